"""Spellings of a forbidden command: which the guard stops, and which similar commands it lets run."""

import pytest

from pipeline.kernel.records import Draft, Kind
from pipeline.prompt.tool_calls.turn import concerns
from pipeline.write.prepare import prepare
from pipeline.write.tool_actions import find_target_for_guard

CLEAN = "Never run git clean -fdx in this repository."
FORCE = "Never force-push to main."
FORCE_FLAG = "Nie git push --force auf main, das hat uns schon mal einen Tag gekostet"
DROP = "Never drop the production database."
DROP_DE = "Niemals die Produktionsdatenbank löschen!"
DROP_ES = "nunca borres la base de datos de producción"
DROP_FR = "Ne supprime jamais la base de données de prod."
REMOVE = "never rm -rf /srv/data, there is no backup of it"
VERIFY = "Never commit with --no-verify."
DELETE = "never run kubectl delete namespace"
DESTROY = "Never run terraform destroy."
DOWN = "Nunca ejecutes docker compose down -v"
RESET = "Please never git reset --hard here"
PUBLISH = "never run npm publish by yourself"

# For each rule, spellings of the forbidden command, and similar commands that may run.
SPELLINGS = {
    CLEAN: (
        [
            "git clean -fdx",
            "git clean -xfd",
            "git clean -f -d -x",
            "git clean --force -d -x",
            "git clean -dx --force",
            "git -C . clean -xdf",
            "git -c clean.requireForce=false clean -fdx",
            "/usr/bin/git clean -fxd",
            "env GIT_PAGER=cat git clean -dfx",
            "sudo -E git clean -fdx",
            "command git clean -fdx",
            "nice -n 10 git clean -fdx",
            "timeout 5 git clean -fdx",
            "time git clean -fdx",
            "nohup git clean -fdx &",
            "stdbuf -oL git clean -fdx",
            "bash -c 'git clean -fdx'",
            'sh -xc "git clean -fdx"',
            "bash <<EOF\ncd build\ngit clean -fdx\nEOF",
            "bash -s <<'EOF'\ngit clean -xfd\nEOF",
            'sh <<< "git clean -fdx"',
            "echo git clean -fdx | sh",
            "printf 'git clean -fdx\\n' | bash -",
            "cat <<EOF | bash\ngit clean -fdx\nEOF",
            "eval git clean -fdx",
            'eval "git clean -fdx"',
            'echo "done $(git clean -fdx)"',
            "echo `git clean -fdx`",
            "CMD='git clean -fdx'; $CMD",
            "FLAGS=-fdx; git clean $FLAGS",
            "G=git; $G clean -fdx",
            "git cl\\ean -fdx",
            "'git' clean \"-fdx\"",
            "git clean -fdx -- build",
            "if true; then git clean -fdx; fi",
            "(cd build && git clean -fdx)",
            "{ git clean -fdx; }",
            "ls && git clean -fdx",
            "git clean -fdxq",
            "git clean -fdx -e .env",
            "find . -maxdepth 1 -type d -exec git -C {} clean -fdx \\;",
            "ls -d */ | xargs -n 1 git clean -fdx",
            "git submodule foreach 'git clean -fdx'",
            "git submodule foreach --recursive git clean -xfd",
            "alias wipe='git clean -fdx'; wipe",
            "diff <(git clean -fdx) old.txt",
            "git clean -fd \\\n  -x",
        ],
        [
            "git clean -fdx --dry-run",
            "git clean -fdxn",
            "git clean -n -fdx",
            "git clean --dry-r -fdx",
            "git clean -fd",
            "git clean -n",
            "git clean -fdX",
            "git status",
            "echo 'git clean -fdx'",
            'echo "never git clean -fdx"',
            'grep -rn "git clean -fdx" docs',
            "git commit -m 'Say that git clean -fdx is forbidden'",
            "git commit -m \"$(cat <<'EOF'\nWarn of clean\n\ngit clean -fdx removes all\nEOF\n)\"",
            "cat > CLEAN.md <<'EOF'\ngit clean -fdx\nEOF",
            "git log --grep 'git clean -fdx'",
            "make test # not git clean -fdx",
            "rg -n 'git clean' -- src",
            "gh issue create --title 'git clean -fdx removed my .env' --body x",
            "make clean",
            "git stash push -- clean",
        ],
    ),
    FORCE: (
        [
            "git push --force origin main",
            "git push origin main --force",
            "git push -f origin main",
            "git push -uf origin main",
            "git push origin +main",
            "git push origin +HEAD:main",
            "git push origin +feature:refs/heads/main",
            "git push --force-with-lease origin main",
            "git push --force-with-lease=main:abc123 origin main",
            "git push --mirror",
            "git push --force --all",
            "for b in main; do git push --force origin $b; done",
            'for b in dev main; do git push --force origin "$b"; done',
            "BR=main; git push --force origin $BR",
            "export BR=main && git push --force origin ${BR}",
            "git push --force origin ${BR:-main}",
            "git push --force origin $BR",
            'git push --force origin "$(git branch --show-current)"',
            "git push --force origin $(echo main)",
            "git checkout main && git push -f",
            "env X=y git push -f origin main",
            "git -C . push -f origin main",
            "git --no-pager push -f origin main",
            "git push -o ci.skip -f origin main",
            "git push --force origin HEAD:main",
            "git push --force origin refs/heads/main",
            "git push --force origin 'refs/heads/*'",
            "sudo -u deploy git push -f origin main",
            "ssh build 'cd app && git push -f origin main'",
            "docker run --rm -v $PWD:/w alpine/git git push -f origin main",
            "git -c alias.up='push --force' up origin main",
            "git push --force origin {dev,main}",
        ],
        [
            "git push origin main",
            "git push -u origin main",
            "git push --force --dry-run origin main",
            "git push -fn origin main",
            "git push --force origin feature/menu",
            "git push -f origin main:feature",
            "git push origin +feature",
            "BR=feature; git push --force origin $BR",
            "for b in a b; do git push --force origin $b; done",
            'git log --grep "push --force"',
            "git log --grep push --force",
            'git commit -m "never push --force to main"',
            "echo git push --force origin main",
            'rg "push --force" .github',
            "git config push.default current",
            "git fetch --force origin main",
            "git tag -f main-1",
            "git push origin main # --force",
            "cat > hook.sh <<EOF\ngit push --force origin main\nEOF",
            "sed -n '/git push --force origin main/p' notes.md",
            "gh pr create --title 'Stop git push --force origin main'",
        ],
    ),
    FORCE_FLAG: (
        ["git push origin +main", "git push -f origin HEAD:main", "GIT_TRACE=1 git push origin main --force"],
        ["git push origin main", "git push --force origin topic", "git push --force -n origin main"],
    ),
    DROP: (
        [
            "dropdb prod",
            "dropdb -h db.internal shop_production",
            "psql -c 'drop database prod'",
            'psql -h prod-db -c "DROP DATABASE IF EXISTS shop"',
            "mysqladmin -f drop prod",
            "mysql -e 'drop database prod;'",
            "psql prod <<SQL\nDROP DATABASE shop;\nSQL",
            "echo 'drop schema public cascade' | psql prod",
            "sudo -u postgres dropdb prod",
            "RAILS_ENV=production rails db:drop",
            "RAILS_ENV=production bundle exec rake db:drop",
            "docker compose exec db dropdb prod",
            "kubectl exec -n prod db-0 -- dropdb shop",
            "aws rds delete-db-instance --db-instance-identifier prod",
            "gcloud sql instances delete prod",
            "APP_ENV=prod php artisan db:wipe",
            "mongosh prod --eval 'db.dropDatabase()'",
            "sqlite3 prod.db 'drop database x'",
        ],
        [
            "dropdb shop_dev",
            "dropdb test",
            "psql -c 'select 1' prod",
            "pg_dump prod > prod.sql",
            "RAILS_ENV=test rails db:drop",
            "psql staging -c 'drop database x'",
            "grep -rn 'drop database' prod/",
            "echo 'never drop database prod'",
            "git commit -m 'never drop database prod'",
            "createdb prod_copy",
            "psql prod -f report.sql",
        ],
    ),
    DROP_DE: (
        ["dropdb prod", "mysql prod -e 'DROP DATABASE prod'", "dropdb -e produktion"],
        ["dropdb lokal", "psql prod -c 'select now()'", "ls datenbank"],
    ),
    DROP_ES: (["dropdb prod", "mysqladmin drop produccion"], ["dropdb pruebas_test", "mysqladmin status"]),
    DROP_FR: (["dropdb prod", "psql -d prod -c 'drop database prod'"], ["dropdb dev", "psql prod -l"]),
    REMOVE: (
        [
            "rm -rf /srv/data",
            "rm -fr /srv/data/",
            "rm -r -f /srv/data",
            "rm --recursive --force /srv/data",
            "rm -Rf /srv/data",
            "rm -rf tmp /srv/data",
            "rm -rfv /srv/data/*",
            "sudo rm -rf -- /srv/data",
            "D=/srv/data; rm -rf $D",
            'D=/srv/data; rm -rf "$D"/*',
            "cd /srv && rm -rf data",
            "rm /srv/data -rf",
            "busybox rm -rf /srv/data",
        ],
        [
            "rm -rf build",
            "rm -rf /srv/tmp",
            "rm -f /srv/data/x.lock",
            "ls -R /srv/data",
            "du -sh /srv/data",
            "rm -i notes.txt",
            "echo rm -rf /srv/data",
        ],
    ),
    VERIFY: (
        [
            "git commit --no-verify -m x",
            "git commit -nm x",
            "git commit -anm 'x'",
            "git commit -m x --no-ver",
            "git -c user.name=x commit -n -m y",
            "HUSKY=0 git commit --no-verify -m x",
        ],
        [
            "git commit -m 'no-verify'",
            "git commit -m 'we say --no-verify never'",
            "git commit -mno",
            "git log -n 3",
            "git push -n",
            "git commit --dry-run",
            "git commit -F - <<EOF\nForbid --no-verify\nEOF",
        ],
    ),
    DELETE: (
        [
            "kubectl delete namespace shop",
            "kubectl -n x delete namespace shop",
            "kubectl --context prod delete namespace shop",
            "kubectl delete ns shop",
            "kubectl delete namespaces a b",
            "kubectl delete --wait=false namespace shop",
            "xargs kubectl delete namespace < names.txt",
        ],
        [
            "kubectl delete namespace shop --dry-run=client",
            "kubectl get namespace",
            "kubectl delete pod x",
            "kubectl describe namespace shop",
            "kubectl create namespace shop",
        ],
    ),
    DESTROY: (
        [
            "terraform destroy",
            "terraform -chdir=infra destroy -auto-approve",
            "terraform apply -destroy",
            "TF_VAR_a=b terraform destroy -target=x",
            "docker run -it hashicorp/terraform terraform destroy",
        ],
        ["terraform plan", "terraform plan -destroy", "terraform apply", "terraform fmt destroy.tf"],
    ),
    DOWN: (
        [
            "docker compose down -v",
            "docker compose down --volumes",
            "docker-compose down -v",
            "docker compose -f a.yml down --remove-orphans -v",
            "docker compose --profile x down -v",
        ],
        ["docker compose down", "docker compose --dry-run down -v", "docker compose up -v", "docker-compose logs -f"],
    ),
    RESET: (
        ["git reset --hard", "git reset HEAD~1 --hard", "git -C . reset --hard origin/main", "git reset --har"],
        ["git reset", "git reset --soft HEAD~1", "git reset HEAD x.py", "git log --grep 'reset --hard'"],
    ),
    PUBLISH: (
        ["npm publish", "npm --prefix pkg publish", "npm publish --tag next", "cd pkg && npm publish"],
        ["npm publish --dry-run", "npm run build", "npm pack", "npm view left-pad"],
    ),
    "never force push to master or release branches": (
        [
            "git push --force origin master",
            "git push origin +HEAD:refs/heads/master",
            "git push -f upstream release/2.1",
            "git push origin --force-with-lease --force-if-includes master",
            "time -p git push -f origin master",
            "GIT_SSH_COMMAND='ssh -i k' git push -f origin master",
            "git push origin '+master'",
            "r=origin; git push -f $r master",
            "git --git-dir=.git push -f origin master",
            "if ! git push origin master; then git push -f origin master; fi",
            "make test && git push -f origin master || true",
            "while read b; do git push -f origin $b; done < branches.txt",
            "python3 -m pytest; git push -f origin HEAD:master",
        ],
        [
            "git push origin master",
            "git push -f origin topic/master-plan",
            "git push --force-with-lease origin wip",
            "git branch -f master-old HEAD",
            "grep -c 'git push --force origin master' log.txt",
            "man git-push",
            "git push --dry-run --force origin master",
            "git log -S'push --force origin master'",
            "git pull --force origin master",
        ],
    ),
    "Don't ever delete the main branch": (
        [
            "git push origin :main",
            "git push origin --delete main",
            "git push -d origin main",
            "git branch -D main",
            "git branch --delete --force main",
        ],
        ["git push origin :old-topic", "git branch -d topic", "git branch main2", "git push origin main"],
    ),
    "Nunca hagas rm -rf node_modules": (
        [
            "rm -rf node_modules",
            "rm -fr ./node_modules/",
            "rm -r --force node_modules",
            "sudo rm -Rf web/node_modules",
            "cd web; rm -rf node_modules",
            "for d in dist node_modules; do rm -rf $d; done",
            "npx rimraf x && rm -rf node_modules",
            "ls | xargs -I{} rm -rf node_modules",
        ],
        [
            "rm -rf dist",
            "ls node_modules",
            "rm -rf node_modules.bak",
            "find node_modules -name '*.ts'",
            "echo 'rm -rf node_modules'",
        ],
    ),
    "Nie kubectl delete in der Produktion ausführen": (
        [
            "kubectl -n prod delete pod x",
            "kubectl delete pod x --namespace=prod",
            "kubectl --context=prod-eu delete -f x.yaml",
            "KUBECONFIG=~/.kube/prod kubectl delete pod x",
            "kubectl config use-context prod && kubectl delete pod x",
            "echo 'kubectl delete pod x -n prod' | bash",
        ],
        [
            "kubectl -n staging delete pod x",
            "kubectl get pods -n prod",
            "kubectl delete pod x -n prod --dry-run=server",
            "kubectl -n prod logs x",
        ],
    ),
    "Never use sudo pip install": (
        ["sudo pip install x", "sudo -H pip3 install x", "sudo python3 -m pip install requests"],
        ["pip list", "sudo apt-get update", "grep 'sudo pip install' README.md"],
    ),
    "never run `docker system prune -a` on this machine": (
        [
            "docker system prune -a",
            "docker system prune -af",
            "docker system prune --all --force",
            "sudo docker system prune --volumes -a",
            "docker system prune -f -a",
        ],
        ["docker system prune", "docker image ls", "docker system df", "echo docker system prune -a"],
    ),
    "Ne lance jamais terraform apply -auto-approve": (
        [
            "terraform apply -auto-approve",
            "terraform -chdir=infra apply -input=false -auto-approve",
            "terraform apply --auto-approve",
            "cd infra && terraform apply -auto-approve plan.out",
        ],
        ["terraform apply", "terraform plan", "terraform validate"],
    ),
    "Never run the migrations with manage.py migrate by hand": (
        [
            "python manage.py migrate",
            "./manage.py migrate app 0003",
            "docker compose exec web python manage.py migrate",
            "uv run manage.py migrate",
            "env DJANGO_SETTINGS_MODULE=x python manage.py migrate",
            "python -Wd manage.py migrate",
            "bash -lc 'source venv/bin/activate; python manage.py migrate'",
            "ssh web1 <<EOF\ncd app\npython manage.py migrate\nEOF",
        ],
        ["python manage.py makemigrations", "python manage.py showmigrations", "cat manage.py"],
    ),
    "never delete the staging database, QA is using it": (
        ["dropdb staging", "psql -h stg-db -c 'drop database app'", "mysql -h staging -e 'DROP SCHEMA app'"],
        ["dropdb app_test", "psql -h staging -c 'select count(*) from users'", "dropdb app_prod_x"],
    ),
    "Never truncate tables in prod": (
        [
            "psql prod -c 'truncate users'",
            "mysql -h prod -e 'TRUNCATE TABLE users'",
            "psql prod <<'EOF'\nbegin;\ntruncate orders;\nEOF",
        ],
        ["psql dev -c 'truncate users'", "psql prod -c 'select 1'", "truncate -s 0 app.log"],
    ),
    "please never rebase this branch": (
        ["git rebase main", "git pull && git rebase -i HEAD~3"],
        ["git merge main", "git log --grep rebase"],
    ),
    "never skip the hooks": (
        ["git commit --no-verify -m x", "git commit -anm x"],
        ["git commit -m x", "ls .git/hooks"],
    ),
    "Never run git stash drop or git stash clear": (
        ["git stash drop", "git stash clear", "git stash drop stash@{1}", "nohup git stash clear"],
        ["git stash", "git stash list", "git stash pop"],
    ),
    "never use --privileged": (
        ["docker run --privileged -it x sh", "sudo docker run -it --privileged x"],
        ["docker run -it x sh", "grep -r -- --privileged ."],
    ),
    "Never run chmod -R 777": (
        [
            "chmod -R 777 .",
            "chmod --recursive 777 /srv",
            "sudo chmod -R 777 x",
            "find . -type d -exec chmod -R 777 {} +",
        ],
        ["chmod 777 x.sh", "chmod -R 755 .", "ls -lR"],
    ),
    "Niemals helm uninstall auf prod": (
        ["helm uninstall api -n prod", "helm --kube-context prod uninstall api", "helm -n prod uninstall api --wait"],
        ["helm uninstall api -n dev", "helm list -n prod", "helm uninstall api -n prod --dry-run"],
    ),
    "Never run git push without asking me": (
        ["git push", "git push origin x", "hub=1 git push -u origin x", "git -c http.extraHeader=x push"],
        ["git pull", "git push --dry-run", "git stash push"],
    ),
    "never reset the database with `rails db:reset`": (
        ["rails db:reset", "bin/rails db:reset", "bundle exec rails db:reset", "docker compose run web rails db:reset"],
        ["rails db:migrate", "rails db:reset:check"],
    ),
    "Never run npm install here, we use pnpm": (
        ["npm install", "npm i left-pad", "cd web && npm install --save-dev x", "npm --prefix web i"],
        ["pnpm install", "npm run build", "npm ls"],
    ),
}
PAIRS = [
    (rule, command, is_stopped)
    for rule, groups in SPELLINGS.items()
    for is_stopped, commands in zip((True, False), groups, strict=True)
    for command in commands
]


def is_stopped_by(rule, command, tool="Bash"):
    target = find_target_for_guard(tool, {"command": command}, is_whole=True)
    return target is not None and concerns(prepare(Draft(rule, Kind.LESSON)).memory, target)


@pytest.mark.parametrize(("rule", "command", "is_stopped"), PAIRS)
def test_a_spelling_of_a_command(rule, command, is_stopped):
    assert is_stopped_by(rule, command) is is_stopped


@pytest.mark.parametrize(
    ("rule", "tool", "target"),
    [
        ("migrations/0001_init.sql was applied to prod; never change it", "Edit", "migrations/0001_init.sql"),
        ("config/prod.yml: do not edit", "Edit", "config/prod.yml"),
        ("terraform apply: forbidden", "Bash", "terraform apply"),
        ("`terraform destroy` - never", "Bash", "terraform destroy"),
        ("Ask before you run `make deploy`. Do not assume.", "Bash", "make deploy"),
        ("terraform apply needs Anna's approval; never skip it", "Bash", "terraform apply"),
        ("Get approval for npm publish, do not publish alone", "Bash", "npm publish"),
    ],
)
def test_a_rule_whose_prohibition_is_in_another_clause_asks(rule, tool, target):
    arguments = {"command": target} if tool == "Bash" else {"file_path": target, "old_string": "a", "new_string": "b"}
    found = find_target_for_guard(tool, arguments, is_whole=True)
    assert found is not None
    assert concerns(prepare(Draft(rule, Kind.LESSON)).memory, found)
