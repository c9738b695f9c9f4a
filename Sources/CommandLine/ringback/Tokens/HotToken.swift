import RingbackClient

/// Recognises the common forms of `ringback token` without the general parser. Everything else, mistakes included, is
/// left to that parser: there is one place that explains usage.
enum HotToken {
    static func recognize(_ arguments: ArraySlice<String>) -> TokenOptions? {
        guard arguments.first == "token" else { return nil }
        var options = TokenOptions()
        var rest = arguments.dropFirst()
        while let word = rest.popFirst() {
            guard word.hasPrefix("-") else {
                guard options.request.account == nil, !word.isEmpty else { return nil }
                options.request.account = word
                continue
            }
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst(), !value.isEmpty,
                !value.hasPrefix("-"), take(value, as: parts[0], into: &options)
            else { return nil }
        }
        return options.request.account == nil ? nil : options
    }

    private static func take(_ value: String, as name: Substring, into options: inout TokenOptions) -> Bool {
        switch name {
        case "--min-valid":
            guard let seconds = Int(value), seconds >= 0 else { return false }
            options.request.minValid = seconds
        case "--socket": options.socket = value
        case "--scope": options.request.scope = value
        case "--audience": options.request.audience = value
        case "--format":
            // The general parser explains what netrc needs.
            guard let format = TokenFormat(rawValue: value), format != .netrc else { return false }
            options.format = format
        default: return false
        }
        return true
    }
}
