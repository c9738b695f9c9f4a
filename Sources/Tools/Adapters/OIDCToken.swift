/// The command line of oidc-agent's `oidc-token`, as that program reads it (argp): short options may stand together,
/// long ones may be abbreviated, and options may follow the account.
public struct OIDCToken: Sendable, Equatable {
    /// Whose token is wanted.
    public enum Account: Sendable, Equatable {
        case name(String)
        case issuer(String)
    }

    /// What is printed instead of a token.
    public enum Page: Sendable, Equatable { case help, usage, version }

    /// A part of what is known of a token.
    enum Part: String, CaseIterable, Sendable {
        case token = "OIDC_AT"
        case issuer = "OIDC_ISS"
        case expiry = "OIDC_EXP"

        /// The variable of ``OIDCToken/answer(_:)``, unless the option names another one.
        var variable: String { rawValue }
    }

    /// What is known of a token.
    public struct Facts: Sendable {
        public let token: String
        public let issuer: String
        /// Unix seconds; 0 where the provider states no lifetime.
        public let expiresAt: Int

        public init(token: String, issuer: String, expiresAt: Int?) {
            self.token = token
            self.issuer = issuer
            self.expiresAt = expiresAt ?? 0
        }
    }

    public private(set) var page: Page?
    public private(set) var account = Account.name("")
    /// Seconds for which the token must be valid; nil if the command line does not say it.
    public private(set) var minValid: Int?
    /// Scopes with spaces between them.
    public private(set) var scope: String?
    public private(set) var audience: String?
    public private(set) var isForced = false
    public private(set) var isIDToken = false
    private var printsAll = false
    /// The parts that were asked for, with the variables that the command line names.
    private var parts: [Part: String?] = [:]

    private struct Option {
        enum Argument { case none, optional, required }
        let name: String
        let letter: Character?
        let argument: Argument
    }

    private static let options: [Option] = [
        Option(name: "all", letter: "a", argument: .none), Option(name: "env", letter: "c", argument: .none),
        Option(name: "expires-at", letter: "e", argument: .optional),
        Option(name: "force-new", letter: "f", argument: .none),
        Option(name: "issuer", letter: "i", argument: .optional),
        Option(name: "token", letter: "o", argument: .optional),
        Option(name: "time", letter: "t", argument: .required), Option(name: "aud", letter: nil, argument: .required),
        Option(name: "id-token", letter: nil, argument: .none),
        Option(name: "name", letter: nil, argument: .required),
        Option(name: "seccomp", letter: nil, argument: .none),
        Option(name: "scope", letter: "s", argument: .required), Option(name: "help", letter: "?", argument: .none),
        Option(name: "usage", letter: nil, argument: .none), Option(name: "version", letter: "V", argument: .none),
    ]

    /// - Parameter arguments: without the program's name.
    /// - Throws: a sentence for the user.
    public init(_ arguments: [String]) throws(AdapterFailure) {
        var rest = arguments[...]
        var words: [String] = []
        while let word = rest.popFirst() {
            if word == "--" {
                words += rest
                break
            } else if word.hasPrefix("--") {
                try takeLong(word.dropFirst(2), &rest)
            } else if word.hasPrefix("-"), word != "-" {
                try takeShort(word.dropFirst(), &rest)
            } else {
                words.append(word)
            }
            if page != nil { return }
        }
        guard words.count == 1, let word = words.first, !word.isEmpty else {
            throw AdapterFailure("oidc-token needs one account's name or one issuer's URL.")
        }
        account = word.contains("://") ? .issuer(word) : .name(word)
    }

    private mutating func takeLong(_ word: Substring, _ rest: inout ArraySlice<String>) throws(AdapterFailure) {
        let pieces = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let found = OIDCToken.options.filter { $0.name == pieces[0] }
        let fitting = found.isEmpty ? OIDCToken.options.filter { $0.name.hasPrefix(pieces[0]) } : found
        guard let option = fitting.first, fitting.count == 1 else {
            throw AdapterFailure(fitting.isEmpty ? "There is no such option." : "An option is ambiguous.")
        }
        var value = pieces.count > 1 ? pieces[1] : nil
        if option.argument == .none, value != nil {
            throw AdapterFailure("The option --\(option.name) has no argument.")
        }
        if option.argument == .required, value == nil { value = rest.popFirst() }
        try take(option, value)
    }

    private mutating func takeShort(_ word: Substring, _ rest: inout ArraySlice<String>) throws(AdapterFailure) {
        var letters = word
        while let letter = letters.popFirst() {
            guard let option = OIDCToken.options.first(where: { $0.letter == letter }) else {
                throw AdapterFailure("There is no such option.")
            }
            guard option.argument != .none else {
                try take(option, nil)
                continue
            }
            // The rest of the word is the argument.
            var value = letters.isEmpty ? nil : String(letters)
            if value == nil, option.argument == .required { value = rest.popFirst() }
            return try take(option, value)
        }
    }

    private mutating func take(_ option: Option, _ value: String?) throws(AdapterFailure) {
        if option.argument == .required, value == nil {
            throw AdapterFailure("The option --\(option.name) needs an argument.")
        }
        switch option.name {
        case "all": printsAll = true
        case "env": for part in Part.allCases { parts.updateValue(parts[part] ?? nil, forKey: part) }
        case "expires-at": try ask(for: .expiry, value)
        case "issuer": try ask(for: .issuer, value)
        case "token": try ask(for: .token, value)
        case "force-new": isForced = true
        case "id-token": isIDToken = true
        case "time":
            guard let seconds = value.flatMap({ Int($0) }), seconds >= 0 else {
                throw AdapterFailure("The option --time needs a number of seconds.")
            }
            minValid = seconds
        case "aud": audience = value
        case "scope": scope = [scope, value].compactMap(\.self).joined(separator: " ")
        case "help": page = .help
        case "usage": page = .usage
        case "version": page = .version
        default: break
        }
    }

    /// The variable's name goes into a line that a shell runs.
    private mutating func ask(for part: Part, _ variable: String?) throws(AdapterFailure) {
        if let variable {
            let isName = variable.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "_"): true
                default: false
                }
            }
            guard isName, !variable.isEmpty, variable.first?.isNumber == false else {
                throw AdapterFailure("An option names a variable that no shell can have.")
            }
        }
        parts.updateValue(variable, forKey: part)
    }

    /// What `oidc-token` prints: one value, all of them in lines, or commands that a POSIX shell reads.
    ///
    /// - Throws: if a value has characters that would add a line or a command.
    public func answer(_ facts: Facts) throws(AdapterFailure) -> [UInt8] {
        guard !facts.token.isEmpty, (facts.token + facts.issuer).utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw AdapterFailure("The token or its issuer has characters that neither has; it is given to no tool.")
        }
        let values: [Part: String] = [
            .token: facts.token, .issuer: facts.issuer, .expiry: String(facts.expiresAt),
        ]
        let wanted = Part.allCases.filter { parts.keys.contains($0) }
        let lines: [String]
        // An ID token has no other form.
        if isIDToken {
            lines = [facts.token]
        } else if printsAll {
            lines = Part.allCases.compactMap { values[$0] }
        } else if wanted.isEmpty {
            lines = [facts.token]
        } else if wanted.count == 1, let part = wanted.first, (parts[part] ?? nil) == nil {
            lines = [values[part] ?? ""]
        } else {
            lines = wanted.map { part in
                let name = (parts[part] ?? nil) ?? part.variable
                return "\(TokenLine.assignment(to: name, values[part] ?? "")); export \(name);"
            }
        }
        return Array(lines.map { $0 + "\n" }.joined().utf8)
    }

    /// The text of `--usage`.
    public static let usage = """
        Usage: oidc-token [-acf?V] [-e[NAME]] [-i[NAME]] [-o[NAME]] [-s SCOPE] [-t SECONDS] [--aud=AUDIENCE]
                          [--id-token] [--name=NAME] [--seccomp] ACCOUNT | ISSUER

        """

    /// The text of `--help`.
    public static let help =
        usage + """
            Prints an access token of a Ringback account, with the options of oidc-agent's program of this name.

              -a, --all                  The token, its issuer and its expiry, each in a line
              -c, --env                  Commands for a shell that export OIDC_AT, OIDC_ISS and OIDC_EXP
              -e, --expires-at[=NAME]    The expiry in seconds since 1970, or a command that exports it as NAME
              -f, --force-new            A new token
              -i, --issuer[=NAME]        The issuer, or a command that exports it as NAME
              -o, --token[=NAME]         The token, or a command that exports it as NAME
              -s, --scope=SCOPE          A token with these scopes; may be repeated
              -t, --time=SECONDS         How long the token must be valid
                  --aud=AUDIENCE         A token for this audience
                  --id-token             The ID token
                  --name=NAME, --seccomp Without effect
              -?, --help; --usage; -V, --version

            """
}
