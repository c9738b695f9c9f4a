internal import RingbackBase

/// The command line of the Python package `keyring`, as far as pip and uv run it: `get SERVICE USERNAME`, with
/// `--mode creds` for a user name and a password, and `--output json`.
public struct KeyringCommand: Sendable, Equatable {
    public let request: AdapterRequest
    let wantsUsername: Bool
    let wantsJSON: Bool

    /// Nil for what another program has to do: another action than `get`, an option that is not known, a service that is
    /// no web server.
    public init?(_ arguments: [String]) {
        var (words, mode, output) = ([String](), "password", "plain")
        var rest = arguments[...]
        while let word = rest.popFirst() {
            guard word.hasPrefix("-") else {
                words.append(word)
                continue
            }
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst() else { return nil }
            switch parts[0] {
            case "--mode": mode = value
            case "--output": output = value
            default: return nil
            }
        }
        guard words.first == "get", ["password", "creds"].contains(mode), ["plain", "json"].contains(output),
            words.count == 3 || words.count == 2 && mode == "creds"
        else { return nil }
        let (service, username) = (words[1], words.count == 3 && !words[2].isEmpty ? words[2] : nil)
        guard username?.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) != false,
            let request = try? service.contains("://")
                ? AdapterRequest(web: service, username: username)
                : AdapterRequest(withoutScheme: "\(service)/", username: username)
        else { return nil }
        self.request = request
        wantsUsername = mode == "creds"
        wantsJSON = output == "json"
    }

    public func answer(_ credential: AdapterCredential) throws(AdapterFailure) -> [UInt8] {
        let username = try credential.basicUsername(otherwise: request.username ?? AdapterCredential.usualName)
        guard wantsJSON else {
            return Array((wantsUsername ? "\(username)\n" : "").utf8) + Array("\(credential.secret)\n".utf8)
        }
        let answer: JSONObject = ["username": wantsUsername ? username : nil, "password": credential.secret]
        return answer.line
    }
}
