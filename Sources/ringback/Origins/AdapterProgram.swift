/// The tools' own protocols, by the first argument or by the program's name: `ringback git-credential get` and
/// `git-credential-ringback get` are the same.
enum AdapterProgram {
    private static let gitName = "git-credential-ringback"
    /// The verbs of the other names of this program.
    private static let verbs = [
        "kubectl-ringback": "kubectl-credential", "docker-credential-ringback": "docker-credential",
    ]

    /// Runs git's helper, if that is meant, and returns its exit status; otherwise nil. git runs it for every connection,
    /// so it is recognized before the general parser.
    static func run(_ arguments: [String]) -> Int32? {
        let rest = Array(arguments.dropFirst())
        if name(arguments) == gitName { return GitCredentialRun(socket: nil).run(rest.last ?? "") }
        guard rest.first == "git-credential", rest.count == 2, !rest[1].hasPrefix("-") else { return nil }
        return GitCredentialRun(socket: nil).run(rest[1])
    }

    /// The arguments without the program's name. If the name stands for a verb, they begin with that.
    static func arguments(_ arguments: [String]) -> [String] {
        let verb = name(arguments).flatMap { verbs[$0] }
        return (verb.map { [$0] } ?? []) + arguments.dropFirst()
    }

    private static func name(_ arguments: [String]) -> String? {
        arguments.first?.split(separator: "/").last.map(String.init)
    }
}
