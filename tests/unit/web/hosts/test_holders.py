from web.hosts.holders import Holder, token_holders


def test_nobody_holds_a_token_before_a_setup(world):
    assert token_holders(world.state, world.reverie.token) == []


def test_a_file_holds_the_token_until_it_is_renewed_and_again_after_the_next_setup(world):
    world.setup("claude-code", "codex", "cursor")
    file = world.home / ".claude" / "settings.json"
    assert token_holders(world.state, world.reverie.token) == [Holder(file, ("claude-code",), current=True)]
    assert token_holders(world.state, "another") == [Holder(file, ("claude-code",), current=False)]
    file.unlink()
    assert token_holders(world.state, world.reverie.token) == []


def test_what_takes_the_token_from_the_environment_holds_none(world):
    world.setup("claude-code", machine=world.in_project())
    assert "Bearer $" in (world.project / ".claude" / "settings.json").read_text()
    assert token_holders(world.state, world.reverie.token) == []
