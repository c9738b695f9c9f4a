import Adapters

/// The tools' own protocols, by the first argument or by the program's name: `ringback git-credential get` and
/// `git-credential-ringback get` are the same.
enum AdapterProgram {
    private static let gitName = "git-credential-ringback"
    private static let oidcName = "oidc-token"
    private static let keyringName = "keyring"
    /// The verbs of the other names of this program.
    private static let verbs = [
        "kubectl-ringback": "kubectl-credential", "docker-credential-ringback": "docker-credential",
        "cargo-credential-ringback": "cargo-credential", "bazel-credential-ringback": "bazel-credential",
        "terraform-credentials-ringback": "terraform-credential",
    ]

    /// Runs git's helper, pnpm's, `keyring` or `oidc-token`, if that is meant, and returns the exit status; otherwise nil.
    /// git runs its helper for every connection, so it is recognized before the general parser; the others have arguments
    /// of their own.
    static func run(_ arguments: [String]) -> Int32? {
        let rest = Array(arguments.dropFirst())
        let name = Self.name(arguments) ?? ""
        if name == gitName { return GitCredentialRun(socket: nil).run(rest.last ?? "") }
        if name == oidcName { return OIDCTokenRun.run(rest) }
        if rest.first == oidcName { return OIDCTokenRun.run(Array(rest.dropFirst())) }
        if name == keyringName { return KeyringRun(socket: nil).run(rest) }
        if name.hasPrefix(PnpmToken.prefix) { return PnpmRun.run(name) }
        guard rest.first == "git-credential", rest.count == 2, !rest[1].hasPrefix("-") else { return nil }
        return GitCredentialRun(socket: nil).run(rest[1])
    }

    /// The arguments without the program's name. If the name stands for a verb, they begin with that.
    static func arguments(_ arguments: [String]) -> [String] {
        var verb = name(arguments).flatMap { verbs[$0] }
        // If a provider is configured with several words, cargo runs only the first one. Its requests have the others.
        if verb == nil, arguments.dropFirst().first == "--cargo-plugin" { verb = "cargo-credential" }
        return (verb.map { [$0] } ?? []) + arguments.dropFirst()
    }

    private static func name(_ arguments: [String]) -> String? {
        guard let path = arguments.first else { return nil }
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return path }
        return String(path[path.utf8.index(after: slash)...])
    }
}

/// One run of pnpm's `tokenHelper`.
enum PnpmRun {
    /// The exit status.
    static func run(_ name: String) -> Int32 {
        let calls = AdapterCalls(socket: nil, tool: "pnpm")
        return AdapterCalls.status { () throws(AdapterFailure) in
            let asked = try PnpmToken(program: name)
            return try calls.answer(asked.request, otherwise: AdapterCalls.noOrigin) { found throws(AdapterFailure) in
                try asked.answer(found)
            }
        }
    }
}
