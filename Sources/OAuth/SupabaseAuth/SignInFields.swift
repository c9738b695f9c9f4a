public import RingbackBase

/// An error in a field of a request, found before anything is sent. The rules are those of the server, so that no input
/// is rejected that the server accepts.
public struct FieldError: Error, Sendable, Equatable {
    /// The member's name in the API.
    public let field: String
    /// Never contains the input itself.
    public let reason: String
}

extension FieldError {
    /// A field without which the request cannot be built.
    public static func missing(_ field: String) -> FieldError { FieldError(field: field, reason: "missing") }
    public static func notString(_ field: String) -> FieldError { FieldError(field: field, reason: "must be a string") }

    /// The request has both a code and the hash of a link, or neither.
    public static let codeOrLink = FieldError(field: "code", reason: "a code or a token_hash is needed, and not both")

    /// The flow sent no code to the address that the request names.
    public static func notAwaited(_ field: String) -> FieldError {
        FieldError(field: field, reason: "this flow expects no code that was sent there")
    }

    /// The message belongs to a change of the user: the request for that change sends it.
    public static let sentWithChange = FieldError(field: "type", reason: "a change is sent again by another request")
}

/// An email address in the form in which the server compares addresses: trimmed and in lower case.
public struct EmailAddress: Sendable, Hashable {
    public let text: String

    /// At most 255 bytes; the domain consists of letters, digits and hyphens. Throws for `email`.
    public init(parsing input: String) throws(FieldError) {
        let text = input.trimmed.lowercased()
        guard !text.isEmpty else { throw FieldError(field: "email", reason: "missing") }
        guard text.utf8.count <= 255 else { throw FieldError(field: "email", reason: "longer than 255 bytes") }
        let parts = text.utf8.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, parts[0].allSatisfy(EmailAddress.isLocal),
            parts[1].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
                .allSatisfy({ EmailAddress.isLabel(Array($0)) })
        else { throw FieldError(field: "email", reason: "not an email address") }
        self.text = text
    }

    private static func isLocal(_ byte: UInt8) -> Bool {
        isAlphanumeric(byte) || ".!#$%&'*+/=?^_`{|}~-".utf8.contains(byte)
    }

    private static func isLabel(_ label: [UInt8]) -> Bool {
        guard (1...63).contains(label.count), let first = label.first, let last = label.last else { return false }
        return isAlphanumeric(first) && isAlphanumeric(last)
            && label.allSatisfy { isAlphanumeric($0) || $0 == UInt8(ascii: "-") }
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte)
    }
}

/// A phone number in E.164 format. The server stores it without the plus sign.
public struct PhoneNumber: Sendable, Hashable {
    /// Only the digits, as they are sent.
    public let digits: String
    /// With the plus sign, as users and apps see it.
    public var text: String { "+\(digits)" }

    /// White space and a plus sign at the start are removed; the rest must be 7 to 15 digits that do not start with
    /// zero. The server accepts even two digits, but no number with a country code is that short. It stores numbers
    /// without the plus sign; who types one is asked for it (``isInternational(_:)``). Dashes and parentheses are
    /// rejected, as by the server. Throws for `phone`.
    public init(parsing input: String) throws(FieldError) {
        var digits = input.filter { !$0.isWhitespace }
        guard !digits.isEmpty else { throw FieldError(field: "phone", reason: "missing") }
        if digits.hasPrefix("+") { digits.removeFirst() }
        guard (7...15).contains(digits.utf8.count), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            digits.utf8.first != UInt8(ascii: "0")
        else {
            throw FieldError(
                field: "phone", reason: "not a number with + and its country code, such as +4915112345678 (E.164)")
        }
        self.digits = digits
    }

    /// False for a typed number without a plus sign: without its country code it would be a number of another country.
    public static func isInternational(_ typed: String) -> Bool { typed.first { !$0.isWhitespace } == "+" }
}

/// What identifies the user at sign-in: an email address or a phone number, never both.
public enum Contact: Sendable, Hashable {
    case email(EmailAddress)
    case phone(PhoneNumber)

    /// Throws for `email` or `phone`.
    public init(email: String?, phone: String?) throws(FieldError) {
        switch (email, phone) {
        case (let email?, nil): self = .email(try EmailAddress(parsing: email))
        case (nil, let phone?): self = .phone(try PhoneNumber(parsing: phone))
        case (nil, nil): throw FieldError(field: "email", reason: "an email address or a phone number is needed")
        case (_?, _?): throw FieldError(field: "phone", reason: "an email address or a phone number, not both")
        }
    }
}

/// A code that the user copies from a message or an authenticator app.
public struct OneTimeCode: Sendable, Equatable {
    /// 6 to 10 digits.
    public let digits: Secret

    /// White space is removed, because codes are often shown in groups. Throws for `code`.
    public init(parsing input: Secret) throws(FieldError) {
        let digits = input.revealedBytes().filter { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
        guard (6...10).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw FieldError(field: "code", reason: "not a code of 6 to 10 digits")
        }
        self.digits = Secret(bytes: digits)
    }
}

/// The rules for passwords.
public enum PasswordRule {
    /// bcrypt uses no more bytes, and the server rejects longer passwords.
    public static let maxBytes = 72
    /// The server's minimum. A project may require more.
    public static let minCharacters = 6
    static let tooShort = FieldError(field: "password", reason: "shorter than \(minCharacters) characters")

    /// Throws for `password`. The minimum length applies only to a new password.
    public static func check(_ password: Secret, isNew: Bool) throws(FieldError) {
        guard !password.isEmpty else { throw FieldError(field: "password", reason: "missing") }
        guard password.count <= maxBytes else {
            throw FieldError(field: "password", reason: "longer than \(maxBytes) bytes")
        }
        guard !isNew || password.revealed().unicodeScalars.count >= minCharacters else { throw tooShort }
    }
}

extension String {
    /// The text without white space at both ends.
    fileprivate var trimmed: String {
        var rest = self[...]
        while let first = rest.first, first.isWhitespace { rest.removeFirst() }
        while let last = rest.last, last.isWhitespace { rest.removeLast() }
        return String(rest)
    }
}
