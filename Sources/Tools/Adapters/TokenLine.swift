/// A token in a line of text that programs read.
public enum TokenLine {
    /// Why a line cannot be written.
    public struct Failure: Error, Equatable {
        /// A sentence.
        public let reason: String
    }

    /// A line of a netrc file, without a line break.
    ///
    /// - Throws: ``Failure`` for a host, name or token with a character that the readers of such files understand in
    ///   different ways: a quote, a backslash, a byte outside 0x21 to 0x7E, or a number sign at the start.
    public static func netrc(host: String, user: String, token: String) throws(Failure) -> String {
        for (word, what) in zip([host, user, token], ["host", "user name", "token"]) {
            let isPlain = !word.isEmpty && word.utf8.allSatisfy { (0x21...0x7E).contains($0) }
            guard isPlain, !word.contains(where: { "\"'\\".contains($0) }), !word.hasPrefix("#") else {
                throw Failure(
                    reason: "The \(what) has a character that programs read from a netrc file in different ways.")
            }
        }
        return "machine \(host) login \(user) password \(token)"
    }

    /// An assignment to a variable, for a POSIX shell, without a line break.
    public static func assignment(to variable: String, _ token: String) -> String { "\(variable)=\(shellWord(token))" }

    /// The token as one word of a POSIX shell, in an assignment too.
    static func shellWord(_ token: String) -> String {
        let isPlain = token.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "_-./+=:@%,".utf8.contains(byte)
            }
        }
        return isPlain ? token : "'" + token.replacing("'", with: #"'\''"#) + "'"
    }
}
