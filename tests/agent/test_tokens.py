# ruff: noqa: RUF001  (texts of many scripts are the subject)
"""The estimate beside a real tokenizer, and what is counted in a message."""

from __future__ import annotations

from collections.abc import Callable
from statistics import mean
from typing import Any

import pytest

from memsheaf.agent import count_tokens, estimate_tokens
from memsheaf.agent.tokens import MEDIA_TOKENS

SAMPLES = {
    "english": [
        (
            "Mira moved to Graz in spring because the conservatory offered her a place in the "
            "cello class. She shares a flat near the river with two friends, and most evenings "
            "they cook together. On Sundays she takes the early train to visit her grandmother, "
            "who taught her to read music before she could write her own name."
        ),
        (
            "The meeting was moved to Thursday at three. Please bring the printed budget, the "
            "list of suppliers and the signed contracts; without them we cannot decide anything. "
            "If you are late, start with page four, where the figures of last year are compared "
            "with what we planned."
        ),
        (
            "I'm allergic to walnuts, so don't suggest recipes with them. Pecans are fine, "
            "almonds too. My partner doesn't eat pork or shellfish, and our daughter only likes "
            "pasta, peas and pancakes at the moment. We usually have about forty minutes on "
            "weekdays."
        ),
        (
            "Authentication fails intermittently after the certificate rotation. Rollback restores"
            " connectivity immediately, which suggests that the intermediate authority is misconfi"
            "gured. Investigate whether the reverse proxy caches the previous chain, and document "
            "every observation thoroughly."
        ),
    ],
    "german": [
        (
            "Kannst du mir bis morgen Abend die Unterlagen für die Steuererklärung zusammenstellen"
            "? Ich brauche vor allem die Lohnabrechnungen, die Spendenquittungen und den Nachweis "
            "über die Handwerkerleistungen."
        ),
        (
            "hey, hab grad gesehen dass der zug morgen ausfällt, kannst du mich mit dem auto "
            "mitnehmen? ich müsste so gegen acht am bahnhof sein"
        ),
        (
            "Der Bundestag hat am Donnerstag ein Gesetz beschlossen, das Mieterinnen und Mieter "
            "besser vor Eigenbedarfskündigungen schützen soll. Die Opposition kritisierte den "
            "Entwurf als unzureichend und kündigte eine Verfassungsbeschwerde an."
        ),
        (
            "Um die Anwendung zu installieren, entpacken Sie das Archiv in einen beliebigen "
            "Ordner und führen anschließend das Installationsskript aus. Beachten Sie, dass "
            "Administratorrechte erforderlich sind."
        ),
        (
            "Mein Mann isst kein Fleisch und wohnt seit zwei Jahren in Graz. Er arbeitet als "
            "Tischler und spielt am Wochenende Tennis."
        ),
        (
            "Die Wettervorhersage kündigt für das kommende Wochenende Dauerregen und Sturmböen "
            "an; die Bergrettung warnt vor Wanderungen oberhalb der Baumgrenze."
        ),
        (
            "Mira ist im Frühling nach Graz gezogen, weil ihr die Musikuniversität einen Platz "
            "in der Celloklasse angeboten hat. Sie wohnt mit zwei Freundinnen in einer Wohnung "
            "am Fluss, und an den meisten Abenden kochen sie gemeinsam. Sonntags fährt sie "
            "mit dem ersten Zug zu ihrer Großmutter, die ihr das Notenlesen beigebracht hat."
        ),
        (
            "Die Besprechung wurde auf Donnerstag um drei Uhr verschoben. Bitte bringen Sie "
            "den ausgedruckten Haushaltsplan, die Liste der Lieferanten und die unterschriebenen "
            "Verträge mit; ohne sie können wir nichts entscheiden. Wenn Sie sich verspäten, "
            "beginnen Sie mit Seite vier, auf der die Zahlen des Vorjahres verglichen werden."
        ),
        (
            "Ich vertrage keine Walnüsse, schlag mir also bitte keine Rezepte damit vor. Mandeln "
            "gehen. Mein Mann isst kein Schweinefleisch und keine Meeresfrüchte, und unsere "
            "Tochter mag gerade nur Nudeln, Erbsen und Pfannkuchen. Unter der Woche haben wir "
            "ungefähr vierzig Minuten Zeit."
        ),
        (
            "Nach der Erneuerung der Zertifikate schlägt die Anmeldung gelegentlich fehl. Die "
            "Wiederherstellung der vorherigen Konfiguration behebt das Verbindungsproblem sofort, "
            "was auf eine fehlerhafte Zwischenzertifizierungsstelle hindeutet. Bitte überprüfen "
            "Sie, ob der vorgeschaltete Server die alte Zertifikatskette zwischenspeichert."
        ),
    ],
    "code": [
        (
            "def recent(self, limit: int = 10) -> list[Record]:\n"
            '    """The newest records, newest first."""\n'
            "    if limit <= 0:\n"
            "        return []\n"
            "    rows = self._connection.execute(\n"
            '        "SELECT id, content FROM records ORDER BY updated_at DESC LIMIT ?", '
            "(limit,)\n"
            "    ).fetchall()\n"
            "    return [Record(id=row[0], content=row[1]) for row in rows]\n"
        ),
        (
            "export async function load(path, { signal, retries = 3 } = {}) {\n"
            "  for (let attempt = 0; attempt <= retries; attempt++) {\n"
            "    const response = await fetch(`/api/files/${encodeURIComponent(path)}`, { signal "
            "});\n"
            "    if (response.ok) return response.json();\n"
            "    await new Promise((done) => setTimeout(done, 2 ** attempt * 100));\n"
            "  }\n"
            "  throw new Error('cannot load ' + path);\n"
            "}\n"
        ),
        (
            "impl Counter {\n"
            "    pub fn new() -> Self {\n"
            "        Counter { counts: HashMap::new(), total: 0 }\n"
            "    }\n"
            "\n"
            "    pub fn add(&mut self, word: &str) {\n"
            "        *self.counts.entry(word.to_owned()).or_insert(0) += 1;\n"
            "        self.total += 1;\n"
            "    }\n"
            "}\n"
        ),
        (
            '{"memory": "m1", "kind": "fact", "tags": ["music", "home"], "date": '
            '"2026-05-01", "text": "Mira plays the cello"}\n'
            '{"context": "profile", "text": "- lives in Graz\\n- prefers short answers"}\n'
        ),
    ],
    "chinese": [
        (
            "请帮我把下周的行程整理一下：周一上午去银行，下午三点和客户见面；周三要飞上海，"
            "酒店还没有订。"
        ),
        (
            "人工智能正在改变软件开发的方式。越来越多的团队使用大型语言模型来编写代码、生成"
            "测试用例以及审查合并请求。"
        ),
        ("我家的猫叫小黑，今年五岁了，最喜欢趴在窗台上晒太阳。医生说它有点胖，需要控制饮食。"),
        ("安装完成后，请运行以下命令来检查环境变量是否设置正确，如果出现错误，请查看日志文件。"),
        (
            "米拉春天搬到了格拉茨，因为音乐学院录取她进入大提琴班。她和两个朋友住在河边的一"
            "套公寓里，晚上大家经常一起做饭。每个星期天她都坐早班火车去看望外婆，是外婆在她"
            "会写自己的名字之前教会了她识谱。"
        ),
        (
            "会议改到星期四下午三点。请带上打印好的预算、供应商名单和已经签字的合同，没有这"
            "些我们什么也决定不了。如果你迟到了，请从第四页开始看，那里比较了去年的数字和我"
            "们的计划。"
        ),
        (
            "我对核桃过敏，所以请不要推荐含有核桃的菜谱。杏仁没有问题。我先生不吃猪肉和海鲜"
            "，女儿现在只喜欢面条、豌豆和煎饼。平时我们大约有四十分钟的时间做饭。"
        ),
    ],
    "japanese": [
        (
            "来週の予定を整理してください。月曜日の午前は銀行、午後三時にお客様と打ち合わせ"
            "があります。水曜日は大阪へ出張ですが、ホテルはまだ予約していません。"
        ),
        (
            "うちの猫は五歳で、窓辺で日向ぼっこをするのが大好きです。獣医さんには少し太り気"
            "味だと言われました。"
        ),
        (
            "インストールが完了したら、次のコマンドを実行して設定を確認してください。エラー"
            "が出た場合はログファイルを参照してください。"
        ),
        (
            "ミラは春にグラーツへ引っ越しました。音楽大学のチェロ科に合格したからです。川の"
            "近くのアパートで二人の友達と暮らしていて、夜はたいてい一緒に料理をします。日曜"
            "日には朝早い電車で祖母に会いに行きます。"
        ),
        (
            "会議は木曜日の午後三時に変更されました。印刷した予算書、取引先の一覧、署名済み"
            "の契約書を持ってきてください。それがないと何も決められません。遅れる場合は、昨"
            "年の数字と計画を比べている四ページから読み始めてください。"
        ),
        (
            "クルミのアレルギーがあるので、クルミを使ったレシピは勧めないでください。アーモ"
            "ンドは大丈夫です。夫は豚肉と貝類を食べません。娘は今、パスタとえんどう豆とパン"
            "ケーキしか食べてくれません。"
        ),
    ],
    "korean": [
        (
            "다음 주 일정을 정리해 주세요. 월요일 오전에는 은행에 가고 오후 세 시에 고객을 "
            "만납니다. 수요일에는 부산에 출장을 가는데 호텔은 아직 예약하지 않았어요."
        ),
        (
            "우리 집 고양이는 다섯 살이고 창가에서 햇볕을 쬐는 것을 제일 좋아해요. 의사 선생"
            "님이 조금 뚱뚱하다고 하셨어요."
        ),
        ("설치가 끝나면 다음 명령을 실행하여 환경 변수가 올바르게 설정되었는지 확인하십시오."),
        (
            "미라는 봄에 그라츠로 이사했습니다. 음악 대학의 첼로 반에 합격했기 때문입니다. "
            "강 근처의 아파트에서 친구 두 명과 함께 살고, 저녁에는 대개 같이 요리를 합니다. "
            "일요일에는 이른 기차를 타고 할머니를 뵈러 갑니다."
        ),
        (
            "회의는 목요일 오후 세 시로 옮겨졌습니다. 인쇄한 예산안과 거래처 목록, 서명한 계"
            "약서를 가져와 주세요. 그것이 없으면 아무것도 결정할 수 없습니다. 늦으면 작년 숫"
            "자와 계획을 비교한 네 번째 쪽부터 읽어 주세요."
        ),
    ],
}


@pytest.fixture(scope="module")
def o200k() -> Callable[[str], int]:
    """OpenAI's vocabulary, which ships in the wheel."""
    module = pytest.importorskip("bpe_openai")
    encoding = module.get_encoding("o200k_base")
    return lambda text: len(encoding.encode_ordinary(text))


@pytest.mark.parametrize("language", SAMPLES)
def test_the_estimate_is_near_a_real_count(language: str, o200k: Callable[[str], int]) -> None:
    ratios = [estimate_tokens(text) / o200k(text) for text in SAMPLES[language]]
    assert mean(abs(ratio - 1) for ratio in ratios) <= 0.2
    assert 0.9 <= mean(ratios) <= 1.2


def test_signs_that_stand_among_accented_letters_are_signs() -> None:
    for sign in "×÷":
        text = f"Set the width of the screen to 1920 {sign} 1080 pixels please"
        assert estimate_tokens(text) == estimate_tokens(text.replace(sign, "+"))


def test_the_estimate_needs_no_vocabulary() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("cello") == 1
    for text in ("\ud800\x00", "\u202e", "\n" * 100, "\U0001f468\u200d\U0001f469", "\u0e01" * 9):
        assert estimate_tokens(text) >= 1
    # more text never has fewer tokens
    grown = [estimate_tokens("word, 大提琴 7\n" * n) for n in range(50)]
    assert grown == sorted(grown)


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        ({"role": "user", "content": "one two three"}, 3),
        ({"role": "user", "content": [{"type": "text", "text": "one two"}, "three"]}, 3),
        ({"role": "assistant", "content": None, "tool_calls": []}, 0),
        ({"role": "user"}, 0),
        ({"role": "tool", "tool_call_id": "t1", "content": "a b c d"}, 4),
        (
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "t1",
                        "type": "function",
                        "function": {"name": "grep", "arguments": "a b"},
                    }
                ],
            },
            3,
        ),
        (
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "a b c"},
                    {
                        "type": "tool_use",
                        "id": "t1",
                        "name": "grep",
                        "input": {"what": "d e", "n": 7},
                    },
                ],
            },
            7,
        ),
        (
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "content": [{"type": "text", "text": "a b"}],
                    }
                ],
            },
            2,
        ),
        (
            {"role": "user", "content": [{"type": "image", "source": {"data": "AAAA" * 9_000}}]},
            MEDIA_TOKENS,
        ),
        ("bare words", 2),
    ],
)
def test_everything_that_is_sent_is_counted(message: Any, tokens: int) -> None:
    assert count_tokens([message], words) == 4 + tokens


def test_a_large_call_and_its_result_are_not_free() -> None:
    call = {"id": "t1", "function": {"name": "grep", "arguments": "word " * 1_600}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t1", "content": "word " * 1_600},
    ]
    assert count_tokens(messages) > 3_000
