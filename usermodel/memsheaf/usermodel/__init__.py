"""The user model: what is known of a user, derived in the background and traceable."""
