/// pizauth's configuration (pizauth.conf(5)): `key = value;` and blocks `account "NAME" { … }`.
public struct PizauthConfiguration: Sendable, Equatable {
    private enum Token: Equatable {
        case word(String)
        case text(String)
        case mark(Character)
    }

    /// In the file's order.
    public private(set) var accounts: [ForeignAccount] = []
    private var tokens: ArraySlice<Token>

    /// - Throws: for what pizauth would not read either, and for a setting that stands twice.
    public init(reading bytes: [UInt8]) throws(AdapterFailure) {
        guard bytes.count <= ForeignAccount.maxInput, let text = String(validating: bytes, as: UTF8.self) else {
            throw AdapterFailure("The file is no text of UTF-8, or it is too long.")
        }
        tokens = try PizauthConfiguration.tokens(text)[...]
        while let token = tokens.popFirst() {
            guard case .word(let word) = token else { throw PizauthConfiguration.malformed }
            if word == "account" {
                try readAccount()
            } else {
                try skipValue()
            }
        }
        guard Set(accounts.map(\.name)).count == accounts.count else {
            throw AdapterFailure("The file has an account twice.")
        }
    }

    private static let malformed = AdapterFailure("The file is not as pizauth.conf(5) describes it.")

    private static func tokens(_ text: String) throws(AdapterFailure) -> [Token] {
        var tokens: [Token] = []
        var rest = text[...]
        while let character = rest.first {
            if character.isWhitespace {
                rest.removeFirst()
            } else if rest.hasPrefix("//") {
                rest = rest.drop { !$0.isNewline }
            } else if character == "\"" {
                tokens.append(.text(try string(&rest)))
            } else if "={}[],;:".contains(character) {
                tokens.append(.mark(rest.removeFirst()))
            } else {
                let word = rest.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
                guard !word.isEmpty else { throw malformed }
                tokens.append(.word(String(word)))
                rest = rest[word.endIndex...]
            }
        }
        return tokens
    }

    /// A text in quotation marks, in which `\"` and `\\` stand for one character.
    private static func string(_ rest: inout Substring) throws(AdapterFailure) -> String {
        var text = ""
        rest.removeFirst()
        while let character = rest.popFirst() {
            if character == "\"" { return try ForeignAccount.checked(text) }
            if character == "\\", let next = rest.first, next == "\"" || next == "\\" {
                text.append(rest.removeFirst())
            } else {
                text.append(character)
            }
        }
        throw malformed
    }

    private mutating func take(_ mark: Character) throws(AdapterFailure) {
        guard tokens.popFirst() == .mark(mark) else { throw PizauthConfiguration.malformed }
    }

    private mutating func takeText() throws(AdapterFailure) -> String {
        guard case .text(let text) = tokens.popFirst() else { throw PizauthConfiguration.malformed }
        return text
    }

    /// `= value;` of a setting that is not taken over: a text or a time.
    private mutating func skipValue() throws(AdapterFailure) {
        try take("=")
        switch tokens.popFirst() {
        case .word, .text: try take(";")
        default: throw PizauthConfiguration.malformed
        }
    }

    private mutating func readAccount() throws(AdapterFailure) {
        var account = ForeignAccount(name: try takeText())
        var known: Set<String> = []
        try take("{")
        while tokens.first != .mark("}") {
            guard case .word(let key) = tokens.popFirst() else { throw PizauthConfiguration.malformed }
            guard known.insert(key).inserted else { throw AdapterFailure("A setting of an account stands twice.") }
            try readSetting(key, of: &account)
        }
        try take("}")
        guard account.authorizationEndpoint != nil, account.tokenEndpoint != nil, account.clientID != nil else {
            throw AdapterFailure("An account has no auth_uri, token_uri or client_id.")
        }
        // pizauth's default, with a port of its own choice.
        account.redirectURI = ForeignAccount.withPort(account.redirectURI ?? "http://localhost/")
        if known.contains("login_hint") || known.contains("auth_uri_fields") {
            account.notes.append(
                "login_hint and auth_uri_fields are not taken over: the account's authorization_params are for them.")
        }
        accounts.append(account)
    }

    private mutating func readSetting(_ key: String, of account: inout ForeignAccount) throws(AdapterFailure) {
        switch key {
        case "scopes": account.scopes = try readList()
        case "auth_uri_fields": return try skipFields()
        case "auth_uri", "token_uri", "client_id", "client_secret", "redirect_uri":
            try take("=")
            let text = try takeText()
            try take(";")
            switch key {
            case "auth_uri": account.authorizationEndpoint = text
            case "token_uri": account.tokenEndpoint = text
            case "client_id": account.clientID = text
            case "client_secret": account.clientSecret = text.isEmpty ? nil : text
            default: account.redirectURI = text
            }
        default: try skipValue()
        }
    }

    /// `= ["a", "b"];`
    private mutating func readList() throws(AdapterFailure) -> [String] {
        var values: [String] = []
        try take("=")
        try take("[")
        while tokens.first != .mark("]") {
            if !values.isEmpty { try take(",") }
            if tokens.first == .mark("]") { break }
            values.append(try takeText())
        }
        try take("]")
        try take(";")
        return values
    }

    /// `= { "name": "value" };`
    private mutating func skipFields() throws(AdapterFailure) {
        var isFirst = true
        try take("=")
        try take("{")
        while tokens.first != .mark("}") {
            if !isFirst { try take(",") }
            if tokens.first == .mark("}") { break }
            isFirst = false
            _ = try takeText()
            try take(":")
            _ = try takeText()
        }
        try take("}")
        try take(";")
    }
}
