; What the grammar's own tags leave out.
(comment) @comment
(decorator) @attribute
(_ body: (_) @body)
(function_declaration body: (_) @local)
(generator_function_declaration body: (_) @local)
(function_expression body: (_) @local)
(generator_function body: (_) @local)
(arrow_function body: (_) @local)
(method_definition body: (_) @local)

; A declaration begins where its `export` or `const` does.
(export_statement declaration: (_) @inner) @outer
(export_statement value: (_) @inner) @outer
(lexical_declaration . (variable_declarator) @inner) @outer
(variable_declaration . (variable_declarator) @inner) @outer

; A function that is called at once is only a wall around the file, and so are groups of tests.
(call_expression function: (parenthesized_expression (function_expression body: (_) @open)))
(call_expression function: (parenthesized_expression (arrow_function body: (_) @open)))
(call_expression
  function: [(identifier) @_f (member_expression object: (identifier) @_f)]
  arguments: (arguments . [(string) (template_string)] @name [(arrow_function body: (_) @open) (function_expression body: (_) @open)])
  (#any-of? @_f "describe" "context" "suite")) @definition.test
(call_expression
  function: [(identifier) @_f (member_expression object: (identifier) @_f)]
  arguments: (arguments . [(string) (template_string)] @name)
  (#any-of? @_f "it" "test")) @definition.test

(method_definition name: (_) @name) @definition.method
(assignment_expression
  left: (member_expression property: (_) @ignore) @name
  right: [(arrow_function) (function_expression)]) @definition.function
(export_statement "default" @name value: [(class !name) (arrow_function) (function_expression !name)]) @definition.function
(variable_declarator
  name: (identifier) @name
  value: (call_expression arguments: (arguments [(arrow_function) (function_expression)]) @body)) @definition.function
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @definition.function
(variable_declarator name: (identifier) @name value: (class)) @definition.class
(variable_declarator name: (identifier) @name value: (_)) @definition.constant
(variable_declarator name: (_) @ignore value: (call_expression function: (identifier) @_f (#eq? @_f "require")))
(variable_declarator
  name: (_) @ignore
  value: (assignment_expression (member_expression object: (identifier) @_m) (#any-of? @_m "module" "exports")))
(variable_declarator
  name: (_) @ignore
  value: (assignment_expression right: (assignment_expression (member_expression object: (identifier) @_m) (#eq? @_m "module"))))

(import_statement source: (string (string_fragment) @import))
(export_statement source: (string (string_fragment) @import))
(call_expression
  function: (identifier) @_f
  arguments: (arguments . (string (string_fragment) @import))
  (#eq? @_f "require"))

(export_statement declaration: (_ name: (_) @export))
(export_statement declaration: (_ (variable_declarator name: (identifier) @export)))
(export_statement value: (identifier) @export)
(export_statement value: (_ name: (_) @export))
(export_statement "default" @export)
(export_statement !source (export_clause (export_specifier name: (_) @export)))
(assignment_expression
  left: (member_expression object: [(identifier) (member_expression)] @_o property: (_) @export)
  (#any-of? @_o "exports" "module.exports"))
(assignment_expression
  left: (member_expression) @_m
  right: [
    (identifier) @export
    (class name: (_) @export)
    (function_expression name: (_) @export)
    (object [
      (shorthand_property_identifier) @export
      (pair key: (_) @export)
      (pair value: (identifier) @export)
      (method_definition name: (_) @export)])]
  (#eq? @_m "module.exports"))
