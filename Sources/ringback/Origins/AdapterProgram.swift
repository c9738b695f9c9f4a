/// The tools' own protocols, by the first argument or by the program's name: `ringback git-credential get` and
/// `git-credential-ringback get` are the same. They are recognized before the general parser, since tools run them for
/// every connection.
enum AdapterProgram {
    private static let gitName = "git-credential-ringback"

    /// Runs the adapter that is meant, and returns its exit status; nil if none is.
    static func run(_ arguments: [String]) -> Int32? {
        let name = arguments.first?.split(separator: "/").last.map(String.init)
        let rest = Array(arguments.dropFirst())
        if name == gitName { return GitCredentialRun(socket: nil).run(rest.last ?? "") }
        guard rest.first == "git-credential", rest.count == 2, !rest[1].hasPrefix("-") else { return nil }
        return GitCredentialRun(socket: nil).run(rest[1])
    }
}
