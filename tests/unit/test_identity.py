import os

import pytest
from hypothesis import given, strategies as st

from config.paths import is_workspace_id
from pipeline.features.workspaces import project_file as override_module
from pipeline.features.workspaces.identify import identify, location_of_remote
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.git.branches import find_side_branch
from pipeline.kernel.git.repository import branch_of_folder
from tests.fakes.properties import examples


def repository(folder, config="", head="ref: refs/heads/main\n"):
    git = folder / ".git"
    git.mkdir(parents=True)
    (git / "config").write_text(config)
    (git / "HEAD").write_text(head)
    return folder


def remote(url, name="origin"):
    return f'[remote "{name}"]\n\turl = {url}\n\tfetch = +refs/heads/*:refs/remotes/{name}/*\n'


def worktree(main, folder, name="w"):
    private = main / ".git" / "worktrees" / name
    private.mkdir(parents=True)
    (private / "commondir").write_text("../..\n")
    (private / "HEAD").write_text(f"ref: refs/heads/{name}\n")
    folder.mkdir(parents=True)
    (folder / ".git").write_text(f"gitdir: {private}\n")
    return folder


def agreed(_file, _workspace):
    return True


def override(folder, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".reverie.toml").write_text(text)
    return folder


def id_of(folder, **options):
    return identify(folder, **options).id


# Path


def test_every_folder_of_a_repository_is_one_workspace(tmp_path):
    inner = tmp_path / "My Project" / "src" / "deep"
    inner.mkdir(parents=True)
    (tmp_path / "My Project" / ".git").mkdir()
    found = identify(tmp_path / "My Project")
    assert found.rule == "git"
    assert found.id.startswith("my-project-")
    assert id_of(inner) == id_of(inner / "not-yet-there") == found.id


@pytest.mark.parametrize("name", ["x", ".dotfiles"])
def test_a_folder_keeps_its_id_when_it_becomes_a_repository(tmp_path, name):
    before = identify(tmp_path / name)
    after = identify(repository(tmp_path / name))
    assert (before.rule, after.rule) == ("path", "git")
    assert before.id == after.id


def test_folders_of_one_name_in_two_places_are_two_workspaces(tmp_path):
    assert id_of(repository(tmp_path / "a" / "app")) != id_of(repository(tmp_path / "b" / "app"))


def test_symbolic_link_identifies_its_target(tmp_path):
    repository(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert id_of(tmp_path / "link") == id_of(tmp_path / "real")


@pytest.mark.parametrize("name", ["ünïcode", "x" * 200, "...", "--", "UPPER_case 1", "日本", os.fsdecode(b"\xff\xfe")])
def test_every_folder_has_a_valid_id_and_a_printable_detail(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    found = identify(folder)
    assert is_workspace_id(found.id)
    assert found.detail.isprintable()
    assert identify(folder) == found


@pytest.mark.parametrize("path", ["\x00", "loop"])
def test_a_path_that_cannot_be_followed_is_an_invalid_field(tmp_path, path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(InvalidField):
        identify(tmp_path / path)
    with pytest.raises(InvalidField):
        branch_of_folder(tmp_path / path)


# Remotes


FORMS = [
    "git@github.com:o/r.git",
    "github.com:o/r",
    "ssh://git@github.com:22/o/r",
    "ssh://github.com/o/r.git/",
    "git+ssh://git@GITHUB.com./o//r",
    "https://user:t%40ken@GitHub.com/o/r.git/",
    "https://ghp_secret@github.com:443/o/r?token=secret#x",
    "http://github.com:80/o/./r.git",
    "git://github.com:9418/O/R.git",
    "hg::https://github.com/o/r",
]


@pytest.mark.parametrize("url", FORMS)
def test_every_form_of_a_remote_is_one_workspace(tmp_path, url):
    first = identify(repository(tmp_path / "first", remote(FORMS[0])))
    other = identify(repository(tmp_path / "other", remote(f'"{url}"')))
    assert (first.id, first.rule) == (other.id, other.rule) == (first.id, "git-remote")
    assert first.id.startswith("r-")
    assert "github.com/o/r" in other.detail


@pytest.mark.parametrize(
    "url", ["git@github.com:o/other", "git@gitlab.com:o/r", "https://github.com:8443/o/r", "https://github.com/x/o/r"]
)
def test_other_remotes_are_other_workspaces(tmp_path, url):
    first = repository(tmp_path / "first", remote(FORMS[0]))
    assert id_of(first) != id_of(repository(tmp_path / "other", remote(url)))


def test_unknown_host_is_treated_as_case_sensitive(tmp_path):
    assert location_of_remote("git@host:O/R", tmp_path) != location_of_remote("git@host:o/r", tmp_path)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("git@[::1]:o/r", "::1/o/r"),
        ("[git@host:2222]:o/r", "host:2222/o/r"),
        ("[me:secret@host:2222]:o/r", "host:2222/o/r"),
        ("ssh://git@[::1]:2222/o/r", "::1:2222/o/r"),
        ("git@host:~/a@b/r.git", "host/~/a@b/r"),
        ("git@host:@scope/r", "host/@scope/r"),
        ("https://host/@scope/a%20b", "host/@scope/a b"),
        ("https://host:99999999999999999999/r", "host/r"),
        ("codecommit::us-east-1://me@r", "r/"),
        ("https:///o/r", None),
        ("https://me:sec/ret@host/o/r", None),
        ("https://me:s@ec/ret@host/o/r", None),
        ("https://me@corp:secret@host/o/r", "host/o/r"),
        ("me@corp:secret@host:o/r", None),
        ("ext::ssh -i me:secret@host", None),
        ("//me:secret@host/r", None),
        ("file://%00", None),
        ("", None),
    ],
)
def test_remote_url_yields_its_key(tmp_path, url, key):
    place = location_of_remote(url, tmp_path)
    assert (place and place.key) == key


@pytest.mark.parametrize("path", ["../x", "../x.git", "../x/.git", "{}/x", "file://{}/x.git", "file://localhost{}/x"])
def test_a_clone_of_a_folder_meets_it(tmp_path, path):
    original = repository(tmp_path / "x")
    clone = identify(repository(tmp_path / "clone", remote(path.format(tmp_path))))
    assert clone.rule == "git-remote"
    assert clone.id == id_of(original)


def test_origin_goes_before_the_first_by_name(tmp_path):
    def identify_named(place, *names):
        return identify(repository(tmp_path / place, "".join(remote(f"git@h:{name}", name) for name in names)))

    assert "remote origin " in identify_named("a", "alpha", "origin", "zeta").detail
    assert "remote only " in identify_named("b", "only").detail
    assert "remote alpha " in identify_named("c", "zeta", "alpha").detail


@pytest.mark.parametrize(
    "config",
    [
        '[core]\n\tbare = false\n[Remote "origin"] URL="git@h:o/r" ; said once\n',
        '\ufeff[remote "origin"]\r\n  url = git@h:\\\r\no/r # comment \\\r\n',
        "[remote.Origin]\nurl=git@h:o/r\nurl=git@h:second/one",
        '[include]\npath = /dev/zero\n[remote "origin"\nurl = git@h:bad/one\n[remote "origin"]\nurl = git@h:o/r',
        'garbage\n=\n[\n[remote "or\\igin"]\nurl = "git@h:o"/r\n[url "x"]\nurl = y',
    ],
)
def test_a_config_is_read_like_git_does(tmp_path, config):
    found = identify(repository(tmp_path / "x", config))
    assert found.rule == "git-remote", found
    assert found.detail.endswith("is h/o/r")


def test_a_subsection_is_unquoted(tmp_path):
    found = identify(repository(tmp_path / "x", '[remote "a \\"b\\" ]"]\nurl = git@h:o/r\n'))
    assert 'remote a "b" ] of' in found.detail


SECRET = st.text("abcXYZ0189-_.!~*'%:@/?#[]", min_size=8, max_size=24).map(lambda text: f"Sec{text}ret")
SHORT = st.binary(max_size=60)
WORD = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_", min_size=1, max_size=12).filter(lambda w: w.strip("-_"))


@given(host=WORD, owner=WORD, name=WORD, secret=SECRET, user=WORD)
def test_credentials_never_show(tmp_path_factory, host, owner, name, secret, user):
    base = tmp_path_factory.getbasetemp()
    plain = location_of_remote(f"git@{host}.org:{owner}/{name}.git", base)
    assert plain is not None
    for place in (
        location_of_remote(f"https://{user}:{secret}@{host}.org/{owner}/{name}.git", base),
        location_of_remote(f"ssh://{user}:{secret}@{host}.org:22/{owner}/{name}", base),
    ):
        assert place == plain if not set(secret) & set("/?#") else place in (None, plain)
    assert location_of_remote(f"https://{host}.org/{owner}/{name}?token={secret}", base) == plain
    for url in (f"{user}:{secret}@{host}.org:{owner}/{name}", f"//{user}:{secret}@{host}.org/{owner}/{name}"):
        place = location_of_remote(url, base)
        assert place is None or place == plain or secret.rpartition("@")[2] not in place.key


def test_credentials_are_in_no_answer(tmp_path):
    found = identify(repository(tmp_path / "x", remote("https://ann:hunter2@h/o/r.git")))
    assert "hunter2" not in repr(found)
    assert "ann" not in found.detail.replace(str(tmp_path), "")


# Worktrees, submodules, splits


def test_worktrees_and_clones_meet_and_can_be_split(tmp_path):
    main = repository(tmp_path / "main", remote(FORMS[0]))
    linked = worktree(main, tmp_path / "linked")
    clone = repository(tmp_path / "clone", remote(FORMS[3]))

    def ids(split):
        return [id_of(folder, split=split) for folder in (main, linked, clone)]

    assert len(set(ids("none"))) == 1
    one, same, other = ids("clone")
    assert one == same != other
    assert len(set(ids("worktree"))) == 3
    assert identify(clone, split="clone").rule == "git"


def test_worktrees_of_a_bare_repository_meet(tmp_path):
    bare = tmp_path / "project" / ".bare"
    for name in ("a", "b"):
        private = bare / "worktrees" / name
        private.mkdir(parents=True)
        (private / "commondir").write_text("../..")
        (tmp_path / "project" / name).mkdir()
        (tmp_path / "project" / name / ".git").write_text(f"gitdir: ../.bare/worktrees/{name}")
    a, b = (identify(tmp_path / "project" / name) for name in ("a", "b"))
    assert a == b
    assert a.id.startswith("project-")


def test_submodule_has_a_separate_workspace(tmp_path):
    outer = repository(tmp_path / "outer", remote("git@h:o/outer"))
    inner = outer / ".git" / "modules" / "inner"
    inner.mkdir(parents=True)
    (inner / "config").write_text(remote("git@h:o/inner"))
    (outer / "lib").mkdir()
    (outer / "lib" / ".git").write_text("gitdir: ../.git/modules/inner\n")
    assert identify(outer / "lib").detail.endswith("is h/o/inner")


@pytest.mark.parametrize("text", ["gitdir: elsewhere", "", "gitdir:", "gitdir: \x00", "no git file", "gitdir: .git"])
def test_git_file_with_an_invalid_target_falls_back_to_the_path(tmp_path, text):
    before = id_of(tmp_path)
    (tmp_path / ".git").write_text(text)
    (tmp_path / "src").mkdir()
    found = identify(tmp_path / "src")
    assert (found.id, found.rule) == (before, "path")
    assert f"{tmp_path}/.git:" in found.detail
    assert branch_of_folder(tmp_path) is None


@pytest.mark.parametrize("bad", ["folder", "long"])
def test_a_config_that_cannot_be_read_leaves_the_git_directory(tmp_path, bad):
    config = repository(tmp_path / "x", remote("git@h:o/r")) / ".git" / "config"
    if bad == "folder":
        config.unlink()
        config.mkdir()
    else:
        config.write_text(remote("git@h:o/r") + "#" * (1 << 20))
    found = identify(tmp_path / "x")
    assert found.rule == "git"
    assert f"{config}: is " in found.detail


def test_a_remote_that_names_no_place_leaves_the_git_directory(tmp_path):
    found = identify(repository(tmp_path / "x", remote('"ext::run me:secret@host"')))
    assert found.rule == "git"
    assert "secret" not in repr(found)


@given(
    config=st.binary(max_size=200), head=st.binary(max_size=60), git=st.binary(max_size=60), own=st.binary(max_size=60)
)
@examples(60)
def test_any_bytes_give_a_valid_id_and_the_same_one_again(tmp_path_factory, config, head, git, own):
    folder = tmp_path_factory.mktemp("any")
    repository(folder)
    (folder / ".git" / "config").write_bytes(b'[remote "origin"]\nurl=' + config)
    (folder / ".git" / "HEAD").write_bytes(head)
    (folder / "file").mkdir()
    (folder / "file" / ".git").write_bytes(b"gitdir:" + git)
    (folder / "file" / ".reverie.toml").write_bytes(own)
    for place in (folder, folder / "file"):
        found = identify(place)
        assert is_workspace_id(found.id)
        assert found.detail.isprintable()
        assert identify(place) == found
        branch_of_folder(place)


# Named


def test_explicit_and_environment_workspaces_precede_files(tmp_path):
    override(repository(tmp_path / "x", remote("git@h:o/r")), 'workspace = "own"')
    named = identify(tmp_path / "x", explicit="said", environment="env")
    assert (named.id, named.rule) == ("said", "explicit")
    assert identify(tmp_path / "x", environment="env").rule == "environment"
    found = identify(tmp_path / "x", is_agreed=agreed)
    assert (found.id, found.rule, found.waits) == ("own", "file", False)


def test_workspace_named_by_a_file_is_ignored_until_approved(tmp_path):
    file = override(repository(tmp_path / "x", remote("git@h:o/r")), 'workspace = "own"') / ".reverie.toml"
    found = identify(tmp_path / "x")
    assert (found.rule, found.waits, found.claim.file, found.claim.workspace) == ("git-remote", True, file, "own")
    assert f"{file} claims own, which is not approved" in found.detail
    asked = []
    identify(tmp_path / "x", is_agreed=lambda *claim: asked.append(claim))
    assert asked == [(file, "own")]


def test_file_naming_the_folders_own_workspace_needs_no_approval(tmp_path):
    own = id_of(repository(tmp_path / "x", remote("git@h:o/r")))
    override(tmp_path / "x", f'workspace = "{own}"')
    assert identify(tmp_path / "x").waits is False
    assert id_of(tmp_path / "x") == own


def test_a_file_outside_of_the_repository_is_its_owners(tmp_path):
    repository(tmp_path / "mine" / "x")
    override(tmp_path / "mine", 'workspace = "mine"')
    assert id_of(tmp_path / "mine" / "x") == "mine"
    # In a folder that is no repository, the file may have come with an archive.
    assert identify(tmp_path / "mine").waits is True
    # As soon as the outer folder is a repository, the file may have come with it.
    repository(tmp_path / "mine")
    assert identify(tmp_path / "mine" / "x").waits is True


@pytest.mark.parametrize("which", ["explicit", "environment"])
def test_a_name_that_is_no_id_is_refused(tmp_path, which):
    with pytest.raises(InvalidField):
        identify(tmp_path, **{which: "../x"})


def test_the_nearest_file_wins(tmp_path):
    override(tmp_path, 'workspace = "whole"')
    part = override(tmp_path / "packages" / "part", 'workspace = "part"')
    assert id_of(part / "src", is_agreed=agreed) == "part"
    assert id_of(tmp_path / "packages", is_agreed=agreed) == "whole"
    override(tmp_path / "apart", "")
    assert identify(tmp_path / "apart").rule == "path"


def test_a_file_may_split_and_is_stronger_than_the_setting(tmp_path):
    main = repository(tmp_path / "main", remote(FORMS[0]))
    linked = worktree(main, tmp_path / "linked")
    override(tmp_path, 'split = "clone"')
    assert id_of(main) == id_of(linked) == id_of(main, split="worktree")
    assert identify(main).rule == "git"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('workspace = "No!"', "workspace must match"),
        ("workspace = 3", "workspace must match"),
        ('split = "none"', "split must be one of clone, worktree"),
        ("split = []", "split must be one of"),
        ('colour = "x"', "unknown key colour"),
        ("workspace", "is not TOML"),
        ("a = " + "[" * 3000, "has too many dots and brackets"),
        ("a" + ".a" * 2000 + " = 1", "has too many dots and brackets"),
        ("a" + " . 'a'" * 600 + " = 1", "has too many dots and brackets"),
        ('"#".' + '"a".' * 600 + "a = 1", "has too many dots and brackets"),
        ("[" + "a." * 2000 + "a]", "has too many dots and brackets"),
        ("a = " + "{a = " * 700 + "1", "has too many dots and brackets"),
        ("workspace.a = 1", "workspace must match"),
        ("a.b = 1", "unknown key a"),
        # 1 MB of this took all memory (issue 34, K2).
        ("a" + ".a" * 500_000 + " = 1", "is larger than 4 KiB"),
        ('workspace = "x"' + "\n" * 5000, "is larger than 4 KiB"),
        ("\x00", "is not TOML"),
    ],
)
def test_invalid_workspace_file_is_ignored_and_reported(tmp_path, text, told):
    plain = identify(repository(tmp_path / "x", remote("git@h:o/r")))
    override(tmp_path / "x", text)
    found = identify(tmp_path / "x")
    assert (found.id, found.rule) == (plain.id, plain.rule)
    assert found.problem is not None
    assert found.problem.loc == str(tmp_path / "x" / ".reverie.toml")
    assert found.problem.msg.startswith(told)
    assert found.problem.msg in found.detail


@pytest.mark.parametrize("name", ["me", "me.ada", "me.01jd0000000000000000000000", "me."])
def test_a_file_cannot_name_a_persons_own_workspace(tmp_path, name):
    plain = identify(repository(tmp_path / "x", remote("git@h:o/r")))
    override(tmp_path / "x", f'workspace = "{name}"')
    # Neither where the file came without a repository, nor where a person agreed to it earlier.
    override(tmp_path / "mine", f'workspace = "{name}"')
    for folder in (tmp_path / "x", tmp_path / "mine"):
        found = identify(folder, is_agreed=lambda _file, _workspace: True)
        assert found.claim is None
        assert found.problem is not None
        assert "reserved for a person's own memories" in found.problem.msg
    assert id_of(tmp_path / "x") == plain.id


@pytest.mark.parametrize("name", ["me-too", "media", "team.me"])
def test_a_file_may_name_a_workspace_that_only_resembles_a_persons(tmp_path, name):
    override(tmp_path / "x", f'workspace = "{name}"')
    assert identify(tmp_path / "x", is_agreed=lambda _file, _workspace: True).id == name


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / ".reverie.toml")
    problem = identify(tmp_path).problem
    assert problem is not None
    assert problem.msg == "is not a file"


def test_a_link_in_place_of_a_file_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").write_text('workspace = "x"')
    (tmp_path / ".reverie.toml").symlink_to("elsewhere")
    problem = identify(tmp_path).problem
    assert problem is not None
    assert problem.msg.startswith("is a symbolic link")


@pytest.mark.parametrize("text", ['workspace = "x"', "a.b = 1", "workspace"])
def test_a_file_is_read_once_until_it_changes(tmp_path, monkeypatch, text):
    reads = []
    read_once = override_module._read
    monkeypatch.setattr(override_module, "_read", lambda file: reads.append(file) or read_once(file))
    file = override(tmp_path, text) / ".reverie.toml"
    before = identify(tmp_path, is_agreed=agreed)
    assert identify(tmp_path, is_agreed=agreed) == before
    assert reads == [file]
    file.write_text('workspace = "another"')
    assert identify(tmp_path, is_agreed=agreed).id == "another"


def test_a_comment_and_a_long_text_may_contain_dots(tmp_path):
    text = "# a.b.c.d.e.f.g.h.i.j.k [[[[\nworkspace = 'v1.2.3.4.5.6.7.8.9.10' # [....[[[["
    assert id_of(override(tmp_path, text), is_agreed=agreed) == "v1.2.3.4.5.6.7.8.9.10"


# Branch


@pytest.mark.parametrize(
    ("head", "branch"),
    [
        ("ref: refs/heads/feature/a-b\n", "feature/a-b"),
        ("ref:refs/heads/x", "x"),
        ("3f796f1a722f60f36fb48a1435b90b5c8e3e0000\n", None),
        ("ref: refs/remotes/origin/x\n", None),
        ("ref: refs/heads/.invalid\n", None),
        ("ref: refs/heads/\n", None),
        ("", None),
    ],
)
def test_the_branch_is_read_from_head(tmp_path, head, branch):
    inner = repository(tmp_path / "x", head=head) / "src"
    inner.mkdir()
    assert branch_of_folder(inner) == branch


def test_a_worktree_has_its_own_branch_and_no_git_has_none(tmp_path):
    linked = worktree(repository(tmp_path / "main"), tmp_path / "linked", "topic")
    assert branch_of_folder(linked) == "topic"
    assert branch_of_folder(tmp_path) is None


def test_a_side_branch_is_any_but_the_default_one(tmp_path):
    """The default branch is that of the remote, else the configured one, else one with a usual name."""
    root = tmp_path / "project"
    repository(root, head="ref: refs/heads/topic\n")
    # Without a default branch, no branch is another one.
    assert find_side_branch(root) is None
    (root / ".git/packed-refs").write_text(f"{'1' * 40} refs/heads/main\n")
    assert find_side_branch(root) == "topic"
    (root / ".git/config").write_text("[init]\n\tdefaultBranch = topic\n")
    (root / ".git/refs/heads").mkdir(parents=True, exist_ok=True)
    (root / ".git/refs/heads/topic").write_text("2" * 40)
    assert find_side_branch(root) is None
    (root / ".git/refs/remotes/origin").mkdir(parents=True)
    (root / ".git/refs/remotes/origin/HEAD").write_text("ref: refs/remotes/origin/production\n")
    assert find_side_branch(root) == "topic"
    (root / ".git/HEAD").write_text("3f796f1a722f60f36fb48a1435b90b5c8e3e0000\n")
    assert find_side_branch(root) is None
    assert find_side_branch(tmp_path) is None
