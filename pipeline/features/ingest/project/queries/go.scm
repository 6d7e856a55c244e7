; What the grammar's own tags leave out.
(comment) @comment
(function_declaration body: (_) @body @local)
(method_declaration body: (_) @body @local)
(func_literal body: (_) @local)
(struct_type (field_declaration_list) @body)
(interface_type "{" @body)

(type_declaration . (type_spec name: (_) @name) .) @definition.type
(type_declaration . (type_alias name: (_) @name) .) @definition.type
; Of several names none is told with its value.
(const_spec . name: (_) @name @definition.constant . ",")
(const_spec "," . name: (_) @name @definition.constant)
(var_spec . name: (_) @name @definition.constant . ",")
(var_spec "," . name: (_) @name @definition.constant)
(const_spec name: (_) @name) @definition.constant
(var_spec name: (_) @name) @definition.constant

(field_declaration name: (_) @field)
(field_declaration "," . name: (_) @field)
(field_declaration !name type: (_) @field)
(method_elem name: (_) @field)

(import_spec path: (_) @import)
