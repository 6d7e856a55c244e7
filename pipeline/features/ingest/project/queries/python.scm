; What the grammar's own tags leave out.
(comment) @comment
(decorator) @attribute
(class_definition body: (_) @body)
(function_definition body: (_) @body @local)

(module . (comment)* . (expression_statement . (string) @purpose .))
(class_definition body: (block . (expression_statement . (string) @doc .))) @documented
(function_definition body: (block . (expression_statement . (string) @doc .))) @documented

(type_alias_statement left: (_) @name) @definition.constant
(class_definition body: (block (expression_statement (assignment left: (identifier) @field))))

(import_statement name: (dotted_name) @import)
(import_statement name: (aliased_import name: (_) @import))
(import_from_statement module_name: (_) @import (wildcard_import))
(import_from_statement module_name: (_) @import name: (dotted_name) @import.name)
(import_from_statement module_name: (_) @import name: (aliased_import name: (_) @import.name))

; Said again by what follows, or saying nothing.
(decorated_definition (decorator (identifier) @_d) definition: (_ name: (_) @ignore) (#eq? @_d "overload"))
(decorated_definition
  (decorator (attribute attribute: (identifier) @_d))
  definition: (_ name: (_) @ignore)
  (#any-of? @_d "overload" "setter" "deleter" "getter"))
(function_definition name: (_) @ignore parameters: (parameters . (identifier) .) (#eq? @ignore "__init__"))
(assignment
  left: (identifier) @ignore
  right: (call function: (_) @_f)
  (#any-of? @_f "TypeVar" "TypeVarTuple" "ParamSpec" "typing.TypeVar" "typing.TypeVarTuple" "typing.ParamSpec"))
