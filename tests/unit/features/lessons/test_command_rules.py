"""Which commands a rule in a person's words forbids, in four languages and through wrapper programs."""

import shlex

import pytest
from hypothesis import example, given, strategies as st

from pipeline.features.lessons.command_rules import Verdict, judge
from pipeline.features.lessons.prohibitions import forbids_command, mentions_command

PROD = "never run manage.py flush or loaddata against production"
FORBIDDEN, DOUBTFUL, PERMITTED = Verdict.FORBIDDEN, Verdict.DOUBTFUL, Verdict.PERMITTED
LOADDATA = "from now on never run manage.py loaddata against prod, it overwrites the berth table"
RESET = "Ne lance jamais prisma migrate reset sur la prod."
ESPFLASH = "never run cargo espflash without --monitor, otherwise I lose the panic output"


@pytest.mark.parametrize(
    ("rule", "command", "verdict"),
    [
        (LOADDATA, "uv run python manage.py loaddata berths.json --database prod", FORBIDDEN),
        (LOADDATA, "uv run python manage.py loaddata berths.json --database staging", PERMITTED),
        (LOADDATA, "uv run python manage.py loaddata berths.json", DOUBTFUL),
        (LOADDATA, "uv run python manage.py showmigrations gate", None),
        (LOADDATA, "./manage.py showmigrations --database prod", None),
        (LOADDATA, "DJANGO_ENV=production ./manage.py loaddata a.json", FORBIDDEN),
        (LOADDATA, "export DJANGO_ENV=prod; python3 manage.py loaddata a.json", FORBIDDEN),
        (LOADDATA, "docker compose -f prod.yml exec -T web python manage.py loaddata a.json", FORBIDDEN),
        (LOADDATA, "ssh deploy@prod-2 'cd /srv && python manage.py loaddata a.json'", FORBIDDEN),
        (RESET, "dotenv -e .env.prod -- pnpm prisma migrate reset --force", FORBIDDEN),
        (RESET, "dotenv -e .env.staging -- pnpm prisma migrate reset --force", PERMITTED),
        (RESET, "npx --yes prisma migrate reset", DOUBTFUL),
        (RESET, "pnpm prisma generate", None),
        (RESET, "dotenv -e .env.prod -- pnpm prisma migrate deploy", None),
        (RESET, 'bash -lc "source .env.prod && yarn prisma migrate reset"', FORBIDDEN),
        (ESPFLASH, "cargo espflash flash --release --monitor", PERMITTED),
        (ESPFLASH, "cargo espflash flash --release", FORBIDDEN),
        (ESPFLASH, "cargo build --release", None),
        ("Never force-push to main.", "git push --force -o --help origin main", FORBIDDEN),
        ("Never force-push to main.", "git push --help", None),
        ("Never dbt run --full-refresh on fct_a.", "dbt run --full-refresh -s dim_b", PERMITTED),
        ("Never dbt run --full-refresh on fct_a.", "dbt run --full-refresh", DOUBTFUL),
    ],
)
def test_a_rule_of_the_issue(rule, command, verdict):
    assert judge(rule, command) is verdict


@pytest.mark.parametrize(
    ("rule", "command", "verdict"),
    [
        ("Nie terraform destroy in der Produktion laufen lassen", "TF_WORKSPACE=prod terraform destroy", FORBIDDEN),
        ("Nie terraform destroy in der Produktion laufen lassen", "terraform plan -var-file=prod.tfvars", None),
        ("kubectl delete darf niemals auf prod laufen", "kubectl --context prod-eu delete pod x", FORBIDDEN),
        ("kubectl delete darf niemals auf prod laufen", "kubectl --context staging delete pod x", PERMITTED),
        ("Nie alembic downgrade ohne --sql ausführen", "poetry run alembic downgrade -1", FORBIDDEN),
        ("Nie alembic downgrade ohne --sql ausführen", "poetry run alembic downgrade -1 --sql", PERMITTED),
        ("ansible-playbook niemals starten, außer mit --check", "sudo ansible-playbook site.yml", FORBIDDEN),
        ("ansible-playbook niemals starten, außer mit --check", "ansible-playbook site.yml --check", PERMITTED),
        ("rake db:drop niemals ausführen, außer auf staging", "RAILS_ENV=staging bundle exec rake db:drop", PERMITTED),
        ("rake db:drop niemals ausführen, außer auf staging", "RAILS_ENV=production rake db:drop", FORBIDDEN),
        ("Nunca ejecutes docker compose down -v en el servidor", "docker compose down", None),
        ("Nunca ejecutes docker compose down -v en el servidor", "ssh vega docker compose down -v", FORBIDDEN),
        (
            "Jamás lances php artisan migrate:fresh en producción",
            "APP_ENV=prod php artisan migrate:fresh",
            FORBIDDEN,
        ),
        ("Jamás lances php artisan migrate:fresh en producción", "APP_ENV=local php artisan migrate:fresh", PERMITTED),
        ("no ejecutes helm upgrade sin --atomic", "helm upgrade api ./chart", FORBIDDEN),
        ("no ejecutes helm upgrade sin --atomic", "helm upgrade api ./chart --atomic", PERMITTED),
        ("nunca uses rsync --delete salvo con --dry-run", "rsync -a --delete a/ b/", FORBIDDEN),
        ("nunca uses rsync --delete salvo con --dry-run", "rsync -a --delete --dry-run a/ b/", PERMITTED),
        ("nunca uses rsync --delete salvo con --dry-run", "rsync -a a/ b/", None),
        ("n'exécute jamais flyway clean, sauf en local", "FLYWAY_ENV=local flyway clean", PERMITTED),
        ("n'exécute jamais flyway clean, sauf en local", "flyway -environment=prod clean", FORBIDDEN),
        ("Ne fais jamais terraform apply sans -target", "terraform apply", FORBIDDEN),
        ("Ne fais jamais terraform apply sans -target", "terraform apply -target=module.db", PERMITTED),
        (
            "never run manage.py flush or loaddata against production",
            "python manage.py loaddata x --database prod",
            FORBIDDEN,
        ),
        (
            "never run manage.py flush, migrate or loaddata against prod",
            "python manage.py flush --database prod",
            FORBIDDEN,
        ),
        (PROD, "python manage.py migrate --database prod", None),
        ("never run npm publish unless --dry-run is given", "npm publish", FORBIDDEN),
        ("never run npm publish unless --dry-run is given", "npm publish --dry-run", PERMITTED),
        ("On production, never run `manage.py migrate`", "python manage.py migrate --database staging", PERMITTED),
        ("Never run npm install; use pnpm install.", "pnpm install", None),
        ("Never run npm install; use pnpm install.", "npm install left-pad", FORBIDDEN),
        ("never use npm here, always pnpm", "npm ci", FORBIDDEN),
        ("never use --no-verify", "git commit -m x --no-verify", FORBIDDEN),
        ("never use --no-verify with git commit", "git commit -m x", None),
        ("Never git push without running make check.", "git push", DOUBTFUL),
        ("Never git push without running make check.", "make check", None),
        ("Only run terraform apply with -lock-timeout=5m", "terraform apply", FORBIDDEN),
        ("terraform apply nur mit --confirm ausführen", "terraform apply --confirm", PERMITTED),
        ("cargo test braucht docker nicht", "make test", None),
        ("Always run docker build --no-cache", "docker build --no-cache .", None),
        ("Use docker compose stop before an upgrade", "docker compose stop", None),
        ("nunca ejecutes flyway migrate si no es en local", "flyway migrate -environment=prod", FORBIDDEN),
        ("nunca ejecutes flyway migrate si no es en local", "flyway migrate -environment=local", PERMITTED),
        ("never run supabase db reset except locally", "supabase db reset --local", PERMITTED),
        ("Bitte nie wieder git reset --hard ohne vorher zu fragen", "git reset --hard HEAD~1", DOUBTFUL),
        ("Bitte nie wieder git reset --hard ohne vorher zu fragen", "git reset --soft HEAD~1", None),
        ("N'utilise jamais git push --force, seulement --force-with-lease", "git push --force-with-lease", None),
        ("Nie alembic upgrade auf Live, nur auf staging", "DB=staging alembic upgrade head", PERMITTED),
        ("never use pip directly, use uv pip", "uv pip install x", None),
        ("never run aws s3 rm --recursive on the bucket", "aws --profile x s3 rm s3://b --recursive", FORBIDDEN),
    ],
)
def test_other_rules_of_the_same_kind(rule, command, verdict):
    assert judge(rule, command) is verdict


@pytest.mark.parametrize(
    ("rule", "command", "verdict"),
    [
        ("never push straight to main", "git push origin main", FORBIDDEN),
        ("never push straight to main", "git push -u origin fix/main-menu", PERMITTED),
        ("never push straight to main", "git push origin HEAD:refs/heads/main", FORBIDDEN),
        ("never push straight to main", "git checkout main && git push", FORBIDDEN),
        ("never push straight to main", "git push", DOUBTFUL),
        ("never push straight to main", "git status", None),
        ("never force-push to main", "git push origin main", None),
        ("never force-push to main", "git push -f origin main", FORBIDDEN),
        ("nie auf main pushen", "git push origin main", FORBIDDEN),
        ("pushe niemals direkt auf develop", "git push origin develop", FORBIDDEN),
        ("nunca hagas push a master", "git push origin master", FORBIDDEN),
        ("ne pousse jamais sur main", "git push origin main", FORBIDDEN),
        ("don't commit to main without asking me", "git switch main; git commit -am x", DOUBTFUL),
        ("never commit secrets", "git commit -am x", None),
        ("never push to main or release/2.x", "git push origin release/2.x", FORBIDDEN),
        ("never merge into main yourself", "git checkout main && git merge feature", FORBIDDEN),
        ("never run git push --force on main", "git push --force-with-lease origin main", None),
        ("never run git push --force on main", "git push origin +main --force", FORBIDDEN),
    ],
)
def test_branches_are_places(rule, command, verdict):
    assert judge(rule, command) is verdict


WRAPPERS = [
    "{}",
    "sudo {}",
    "sudo -u deploy {}",
    "env A=b {}",
    "uv run {}",
    "poetry run {}",
    "npx {}",
    "pnpm exec {}",
    "yarn {}",
    "docker compose exec -T web {}",
    "docker exec -it web-1 {}",
    "kubectl exec -n shop pod/web -- {}",
    "ssh -p 22 deploy@vega {}",
    "ssh vega {quoted}",
    "bash -lc {quoted}",
    "cd app && {}",
    "true; {}",
    "timeout -k 5 60 {}",
    "nohup {} > out.log 2>&1 &",
    "dotenv -e .env -- {}",
    "VAR=value {}",
    "echo yes | {}",
    "time nice -n 10 {}",
    "if true; then {}; fi",
    "x=$({})",
]


@given(st.lists(st.sampled_from(WRAPPERS), max_size=2))
@example(["bash -lc {quoted}", "ssh -p 22 deploy@vega {}"])
def test_no_wrapper_hides_a_forbidden_command(wrappers):
    command = "prisma migrate reset"
    for wrapper in wrappers:
        command = wrapper.format(command, quoted=shlex.quote(command))
    assert judge("Nie prisma migrate reset ausführen", command) is FORBIDDEN
    assert judge("Nie prisma migrate deploy ausführen", command) is None


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_rule_and_any_command_can_be_read(rule, command):
    judge(rule, command)


@given(st.sampled_from(["prod", "production", "prd"]), st.sampled_from(["staging", "dev", "uat"]), st.booleans())
def test_a_place_forbids_and_another_place_permits(place, other, is_flag):
    command = "manage.py migrate --database {}" if is_flag else "DJANGO_ENV={} manage.py migrate"
    rule = f"never run manage.py migrate against {place}"
    assert judge(rule, command.format(place)) is FORBIDDEN
    assert judge(rule, command.format(other)) is PERMITTED


def test_the_strictest_command_of_a_line_decides():
    both = "python manage.py loaddata a --database staging && python manage.py loaddata a --database prod"
    assert judge(LOADDATA, both) is FORBIDDEN


@pytest.mark.parametrize(
    ("rule", "message", "mentioned"),
    [
        (LOADDATA, "please get the new berth fixtures into prod with loaddata", True),
        (LOADDATA, "deploy it to prod", False),
        (ESPFLASH, "¿puedes usar espflash con la placa nueva?", True),
        (ESPFLASH, "hola otra vez", False),
        (RESET, "setz die Datenbank mit prisma zurück", True),
        (RESET, "reset the password of the demo user", False),
        ("Ne lance jamais terraform apply sans relire le plan", "apply the patch", False),
        ("Ne lance jamais terraform apply sans relire le plan", "et maintenant terraform apply", True),
        ("Niemals gate/codes.py von Hand ändern", "ajoute le code 9 dans gate/codes.py", True),
    ],
)
def test_a_message_mentions_a_command_by_a_rare_word_or_two(rule, message, mentioned):
    assert mentions_command(rule, message) is mentioned


@pytest.mark.parametrize(
    ("text", "forbids"),
    [
        ("never push to main", True),
        ("Nie prisma migrate reset auf der Produktion ausführen", True),
        ("nunca uses rsync --delete", True),
        ("n'utilise jamais npm audit fix", True),
        ("Niemals gate/codes.py von Hand ändern", True),
        ("don't ever run terraform destroy", True),
        ("Never use nested ternaries", False),
        ("Run make check before every push", False),
        ("Nie mehr als drei Parameter", False),
        ("Jamais de logique dans les vues", False),
    ],
)
def test_a_rule_about_style_forbids_no_command(text, forbids):
    assert forbids_command(text) is forbids
