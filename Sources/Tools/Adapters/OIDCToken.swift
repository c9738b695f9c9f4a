internal import RingbackBase

/// The command line of oidc-agent's `oidc-token`, as that program reads it (argp): short options may stand together,
/// long ones may be abbreviated, and options may follow the account.
public struct OIDCToken: Sendable, Equatable {
    public enum Account: Sendable, Equatable {
        case name(String)
        case issuer(String)
    }

    /// What is printed instead of a token.
    public enum Page: Sendable, Equatable { case help, usage, version }

    /// A part of what is known of a token, and its variable, unless the option names another one.
    enum Part: String, CaseIterable, Sendable {
        case token = "OIDC_AT"
        case issuer = "OIDC_ISS"
        case expiry = "OIDC_EXP"
    }

    /// What is known of a token; its expiry in Unix seconds, nil where the provider states no lifetime.
    public typealias Facts = (token: String, issuer: String, expiresAt: Int?)

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

    private enum Argument { case none, optional, required }
    private typealias Option = (name: String, letter: Character?, argument: Argument)

    private static let options: [Option] = [
        ("all", "a", .none), ("env", "c", .none), ("expires-at", "e", .optional), ("force-new", "f", .none),
        ("issuer", "i", .optional), ("token", "o", .optional), ("time", "t", .required), ("aud", nil, .required),
        ("id-token", nil, .none), ("name", nil, .required), ("seccomp", nil, .none), ("scope", "s", .required),
        ("help", "?", .none), ("usage", nil, .none), ("version", "V", .none),
    ]

    /// - Parameter arguments: without the program's name.
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
            let isName = variable.utf8.allSatisfy { $0.isLetterOrDigit || $0 == UInt8(ascii: "_") }
            guard isName, !variable.isEmpty, variable.first?.isNumber == false else {
                throw AdapterFailure("An option names a variable that no shell can have.")
            }
        }
        parts.updateValue(variable, forKey: part)
    }

    /// What `oidc-token` prints: one value, all of them in lines, or commands that a POSIX shell reads. Throws if a
    /// value has characters that would add a line or a command.
    public func answer(_ facts: Facts) throws(AdapterFailure) -> [UInt8] {
        guard !facts.token.isEmpty, (facts.token + facts.issuer).utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw AdapterFailure("The token or its issuer has characters that neither has; it is given to no tool.")
        }
        let values: [Part: String] = [
            .token: facts.token, .issuer: facts.issuer, .expiry: String(facts.expiresAt ?? 0),
        ]
        let wanted = Part.allCases.filter { parts.keys.contains($0) }
        let lines: [String]
        // An ID token has no other form.
        if isIDToken || wanted.isEmpty && !printsAll {
            lines = [facts.token]
        } else if printsAll {
            lines = Part.allCases.compactMap { values[$0] }
        } else if wanted.count == 1, let part = wanted.first, (parts[part] ?? nil) == nil {
            lines = [values[part] ?? ""]
        } else {
            lines = wanted.map { part in
                let name = (parts[part] ?? nil) ?? part.rawValue
                return "\(TokenLine.assignment(to: name, values[part] ?? "")); export \(name);"
            }
        }
        return Array(lines.map { $0 + "\n" }.joined().utf8)
    }

    public static let usage = """
        Usage: oidc-token [-acf?V] [-e[NAME]] [-i[NAME]] [-o[NAME]] [-s SCOPE] [-t SECONDS] [--aud=AUDIENCE]
                          [--id-token] [--name=NAME] [--seccomp] ACCOUNT | ISSUER

        """

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

/// The answer of an executable of Google's external accounts (workload identity federation), version 1: a subject token
/// as JSON, or why there is none.
public struct GoogleCredential: Sendable, Equatable {
    /// The variable that says which type of token the account's configuration expects.
    public static let typeVariable = "GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE"
    /// The two types that an ID token has there.
    private static let types = ["urn:ietf:params:oauth:token-type:id_token", "urn:ietf:params:oauth:token-type:jwt"]

    private let type: String

    /// - Parameter type: the value of ``typeVariable``; nil if it is not set.
    public init(type: String?) throws(AdapterFailure) {
        let type = type ?? GoogleCredential.types[0]
        guard GoogleCredential.types.contains(type) else {
            throw AdapterFailure("Only ID tokens can be given: set the configuration's subject_token_type to one.")
        }
        self.type = type
    }

    public func answer(_ credential: AdapterCredential) throws(AdapterFailure) -> [UInt8] {
        try credential.checkToken()
        guard credential.secret.split(separator: ".", omittingEmptySubsequences: false).count == 3 else {
            throw AdapterFailure("The token is no JSON Web Token. The origin needs kind = \"id_token\".")
        }
        let answer: JSONObject = [
            "version": 1, "success": true, "token_type": type, "id_token": credential.secret,
            "expiration_time": credential.expiresAt,
        ]
        return answer.line
    }

    /// The answer without a token. Google's libraries show code and message.
    public static func failure(code: String, message: String) -> [UInt8] {
        (["version": 1, "success": false, "code": code, "message": message] as JSONObject).line
    }
}

/// SHA-256 (FIPS 180-4). The command line is linked without a library for cryptography, and needs no more than this: the
/// digest of a token that a server refused.
enum SHA256 {
    private static let initial: [UInt32] = [
        0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
    ]
    private static let constants: [UInt32] = [
        0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
        0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
        0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
        0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
        0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
        0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
        0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
        0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
    ]

    static func hex(_ bytes: [UInt8]) -> String {
        var message = bytes + [0x80]
        message += [UInt8](repeating: 0, count: (120 - message.count % 64) % 64)
        let length = UInt64(bytes.count) &* 8
        message += (0..<8).map { UInt8(truncatingIfNeeded: length >> UInt64(56 - 8 * $0)) }
        var state = initial
        for start in stride(from: 0, to: message.count, by: 64) { compress(&state, message[start..<start + 64]) }
        let digits = Array("0123456789abcdef".utf8)
        let text = state.flatMap { word in (0..<8).map { digits[Int(word >> UInt32(28 - 4 * $0)) & 15] } }
        return String(decoding: text, as: UTF8.self)
    }

    private static func compress(_ state: inout [UInt32], _ block: ArraySlice<UInt8>) {
        var words = stride(from: block.startIndex, to: block.endIndex, by: 4).map { index in
            block[index..<index + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        for index in 16..<64 {
            let early = rotated(words[index - 15], 7) ^ rotated(words[index - 15], 18) ^ (words[index - 15] >> 3)
            let late = rotated(words[index - 2], 17) ^ rotated(words[index - 2], 19) ^ (words[index - 2] >> 10)
            words.append(words[index - 16] &+ early &+ words[index - 7] &+ late)
        }
        var work = state
        for index in 0..<64 {
            let (first, fifth) = (work[0], work[4])
            let mixed = rotated(fifth, 6) ^ rotated(fifth, 11) ^ rotated(fifth, 25)
            let choice = (fifth & work[5]) ^ (~fifth & work[6])
            let one = work[7] &+ mixed &+ choice &+ constants[index] &+ words[index]
            let turned = rotated(first, 2) ^ rotated(first, 13) ^ rotated(first, 22)
            let majority = (first & work[1]) ^ (first & work[2]) ^ (work[1] & work[2])
            work = [one &+ turned &+ majority, work[0], work[1], work[2], work[3] &+ one, work[4], work[5], work[6]]
        }
        for index in 0..<8 { state[index] = state[index] &+ work[index] }
    }

    private static func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 { word >> count | word << (32 - count) }
}
