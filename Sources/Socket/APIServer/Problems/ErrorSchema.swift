internal import RingbackAPI

extension Component {
    static let problem = Component(
        "Problem",
        [
            .required("title", .string), .required("status", .integer),
            .required("code", .words(ErrorCode.table.keys.map(\.rawValue).sorted())), .optional("detail", .string),
            .required("recovery", .words(["retry", "sign_in", "link", "fix_configuration", "none"])),
            .optional("user_message", .string), .optional("retry_after", .integer),
            .optional("errors", .array(.anyObject)), .optional("provider_code", .string),
            .optional("provider_message", .string), .optional("reasons", .array(.string)),
            .optional("account", .string), .optional("host", .string), .optional("port", .integer),
            .optional("setting", .string), .optional("file", .string), .optional("line", .integer),
            .optional("credential", .string), .optional("cause", .string), .optional("path", .string),
            .optional("field", .string), .optional("method", .string), .optional("key_source", .string),
            .optional("other_key_source", .string),
            .optional("exposed_socket", .string),
            .optional("notified", .boolean),
        ])
}
