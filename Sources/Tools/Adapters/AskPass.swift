internal import RingbackBase

/// The protocol of askpass programs: a prompt as the program's argument, a user name or a password as the answer. The
/// prompts of git (credential.c) and wget (`--use-askpass`) have the form `Password for 'https://ada@git.example.org': `,
/// those of git-lfs `Password for "https://ada@git.example.org"`.
public struct AskPass: Sendable, Equatable {
    public let request: AdapterRequest
    let wantsUsername: Bool

    /// Throws for every other prompt, such as ssh's, and for a URL that could name two servers.
    public init(prompt: String) throws(AdapterFailure) {
        let words = prompt.utf8.split(separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false).map(Array.init)
        guard words.count == 3, words[1].elementsEqual("for".utf8), let url = AskPass.unquoted(words[2]),
            let question = ["Username", "Password"].first(where: { words[0].elementsEqual($0.utf8) })
        else { throw AdapterFailure("The prompt asks neither for the user name nor for the password of a URL.") }
        wantsUsername = question == "Username"
        let asked = try GitCredential(.get, reading: AskPass.lines(url, mayHaveUser: !wantsUsername))
        guard let request = asked.request else { throw AdapterFailure("The URL of the prompt has no host.") }
        self.request = request
    }

    private static func unquoted(_ text: [UInt8]) -> ArraySlice<UInt8>? {
        let end = text.first == UInt8(ascii: "'") ? "': " : "\""
        guard text.first == end.utf8.first, text.suffix(end.utf8.count).elementsEqual(end.utf8) else { return nil }
        return text.dropFirst().dropLast(end.utf8.count)
    }

    /// What git writes to a credential helper for the URL of a prompt.
    private static func lines(_ url: ArraySlice<UInt8>, mayHaveUser: Bool) throws(AdapterFailure) -> [UInt8] {
        guard let mark = url.firstRange(of: "://".utf8) else { throw AdapterFailure("The prompt has no URL.") }
        var fields = [("protocol", Array(url[..<mark.lowerBound]))]
        var rest = url[mark.upperBound...]
        if let at = rest.lastIndex(of: UInt8(ascii: "@")) {
            // wget and git before 2.48 do not escape the user name. Its `@` could follow the host of another server, so what
            // follows the last one is the host, and with a slash before that it is unknown which of two is the server.
            guard mayHaveUser, !rest[..<at].contains(UInt8(ascii: "/")) else {
                throw AdapterFailure("The URL of the prompt has an “@” in a place where it could hide the server.")
            }
            fields.append(("username", try unescaped(rest[..<at])))
            rest = rest[(at + 1)...]
        }
        let host = rest.prefix { $0 != UInt8(ascii: "/") }
        fields.append(("host", Array(host)))
        if host.endIndex < rest.endIndex {
            // wget decodes `%2F` in a host, so what looks like a path may be a part of the name of another server, which
            // only its certificate tells apart.
            guard fields[0].1.elementsEqual("https".utf8) else {
                throw AdapterFailure("The URL of the prompt has a path, which only an https URL may have.")
            }
            fields.append(("path", try unescaped(rest[(host.endIndex + 1)...])))
        }
        guard fields.allSatisfy({ $0.1.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }) else {
            throw AdapterFailure("The URL of the prompt has a control character.")
        }
        return fields.flatMap { Array("\($0.0)=".utf8) + $0.1 + [0x0A] }
    }

    private static func unescaped(_ text: ArraySlice<UInt8>) throws(AdapterFailure) -> [UInt8] {
        var (output, rest) = ([UInt8](), text)
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                output.append(byte)
                continue
            }
            guard let high = rest.popFirst()?.hexValue, let low = rest.popFirst()?.hexValue else {
                throw AdapterFailure("The URL of the prompt has an invalid escape.")
            }
            output.append(high << 4 | low)
        }
        return output
    }

    /// The answer: the user name or the token, as a line.
    public func answer(_ credential: AdapterCredential) throws(AdapterFailure) -> [UInt8] {
        let username = try credential.basicUsername()
        return Array("\(wantsUsername ? username : credential.secret)\n".utf8)
    }
}
