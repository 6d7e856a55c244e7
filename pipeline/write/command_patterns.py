"""Patterns of simple commands: those that only read or compare, and those that test, commit or deploy."""

import re

RUNNER = re.compile(
    r"(?:python[\d.]* -m|(?:uv|poetry|pipenv|hatch|rye|pdm) run|npx|bunx|pnpm (?:exec|dlx)|bundle exec|php|ruby|node)"
    r"\s+(?:-\S+\s+)*"
)
LOOKING = re.compile(
    r"(?:ls|ll|dir|cat|bat|head|tail|less|more|wc|file|stat|tree|pwd|which|type|whoami|env|printenv|echo|printf|date|ps"
    r"|top|df|du"
    r"|find(?!.*\s-(?:delete|exec|ok))|fd(?!.*\s-(?:[xX]|-exec))"
    r"|grep|rg|ag|ack|awk|sed -n|sort|uniq|cut|tr|column|xxd|jq|yq(?!.*\s-i)|diff|cmp"
    r"|man|history|cd|pushd|popd|sleep|true|test|\[|done|fi|export|source"
    r"|git (?:-C \S+ )?"
    r"(?:status|diff|grep|merge-base|show-ref|check-ignore"
    r"|log|show|blame|rev-parse|ls-files|stash list|describe|config --get\S*|fetch"
    r"|branch(?!.*\s-(?:[a-zA-Z]*[dDmMcCf]|-delete|-move|-copy|-force))|remote(?!\s+(?:add|remove|rm|rename|set-url)))"
    r"|(?:docker|podman|kubectl) (?:ps|logs|get|describe|images|inspect|rollout status)|npm (?:ls|view|outdated)"
    r"|pip (?:list|show|freeze))"
    r"(?:\s|$)"
)
# Commands that end with 1 if they find nothing or a difference.
COMPARING = re.compile(
    r"(?:(?:if|while|until|then|do|!|\(|\{|[A-Za-z_]\w*=\S*)\s+)*(?:\S*/)?"
    r"(?:[efz]?grep|p?grep|rg|ag|ack|diff|colordiff|sdiff|cmp|comm|test|\[{1,2}|which|type|hash"
    r"|command -[vV]|expr|pidof|jq -e"
    r"|git (?:-C \S+ )?(?:diff|grep|config --get\S*|show-ref|merge-base --is-ancestor|check-ignore|rev-parse"
    r"|symbolic-ref)|false|pip3? show|mountpoint)(?:\s|$)"
)
TEST = re.compile(
    r"(?:\S*/)?(?:pytest|py\.test|unittest|nose2|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|gtest\S*|playwright test"
    r"|cypress run|behave|ava"
    r"|(?:cargo|go|dotnet|swift|mix|bazel|deno|bun|npm|pnpm|yarn|gradle|gradlew|mvn|mvnw|make|just|task|rake|rails|sbt)"
    r" (?:-\S+ )*(?:run )?(?:\S+:)?(?:test|spec)\S*"
    r"|(?:cargo|go) (?:nextest|vet)|run[-_]tests?\S*|tests?\.(?:sh|py|js))(?:\s|$)"
)
COMMIT = re.compile(r"git (?:-\S+ \S+ )*(?:commit|merge|revert|cherry-pick|tag)(?:\s|$)")
DEPLOY = re.compile(
    r"(?:(?:\S*/)?deploy\S*(?:\s|$)|(?:make|just|task|rake|npm run|pnpm|pnpm run|yarn|fab|cap \S+|netlify|sls"
    r"|serverless|wrangler|firebase|fly|flyctl|railway|gcloud \S+|cdk|copilot) (?:\S+:)?(?:deploy|publish|release)\S*"
    r"|kubectl (?:apply|set|rollout (?:restart|undo))|helm (?:install|upgrade)|terraform apply|pulumi up"
    r"|ansible-playbook|docker push|(?:npm|pnpm|yarn|cargo|poetry|twine|gem|uv|hatch) (?:publish|upload|push)(?:\s|$)"
    r"|vercel(?:\s|$)|git push (?:-\S+ )*(?:heroku|dokku|production|prod|live)(?:\s|$))"
)
