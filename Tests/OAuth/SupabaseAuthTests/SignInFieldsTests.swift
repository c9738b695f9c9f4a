import RingbackBase
import Testing

@testable import SupabaseAuth

@Suite struct `What a person typed` {
    @Test(
        arguments: [
            (" Mira@Nordlys.DEV\n", "mira@nordlys.dev"), ("a@b", "a@b"), ("a.b+c@d-e.fg", "a.b+c@d-e.fg"),
            ("o'neil!#$%&*/=?^_`{|}~-@x.org", "o'neil!#$%&*/=?^_`{|}~-@x.org"),
            ("a@\(String(repeating: "b", count: 63)).c", "a@\(String(repeating: "b", count: 63)).c"),
        ])
    func `an address is trimmed and lower-cased`(input: String, text: String) throws {
        #expect(try EmailAddress(parsing: input).text == text)
    }

    @Test(
        arguments: [
            "", " ", "a", "@b", "a@", "a@b@c", "a b@c", "a@b c", "a@.b", "a@b.", "a@b..c", "a@-b", "a@b-", "ä@b.c",
            "a@ä.c",
            "a@b\u{0}c", "a@b_c", "a\nb@c", "a@\(String(repeating: "b", count: 64)).c",
            "\(String(repeating: "a", count: 250))@b.cde",
        ])
    func `what is no address is refused before the network`(input: String) {
        let error = #expect(throws: FieldError.self) { try EmailAddress(parsing: input) }
        #expect(error?.field == "email")
    }

    @Test(
        arguments: [
            ("+49 151 2345678", "+491512345678"), ("491512345678", "+491512345678"), (" +1 234 567 ", "+1234567"),
            ("+49\u{A0}151\u{202F}2345678\t", "+491512345678"),
            ("+123456789012345", "+123456789012345"),
        ])
    func `a number has its plus sign outward alone`(input: String, text: String) throws {
        let number = try PhoneNumber(parsing: input)
        #expect(number.text == text)
        #expect(number.digits == String(text.dropFirst()))
    }

    @Test(
        arguments: [
            "", "+", "1", "+12", "+491512", "0151234", "+0151234", "+1234567890123456", "+49-151-234", "(49)151",
            "++49151", "49a", "49+1",
            "٤٩١٥١", "49\t151", "+ ",
        ])
    func `what is no number is refused`(input: String) {
        let error = #expect(throws: FieldError.self) { try PhoneNumber(parsing: input) }
        #expect(error?.field == "phone")
    }

    @Test(arguments: [("123456", "123456"), (" 123 456\n", "123456"), ("0000000000", "0000000000")])
    func `a code may be typed in groups`(input: String, digits: String) throws {
        #expect(try OneTimeCode(parsing: Secret(input)).digits == Secret(digits))
    }

    @Test(arguments: ["", "12345", "12345678901", "12a456", "-12345", "12.456", "１２３４５６"])
    func `what is no code is refused`(input: String) {
        let error = #expect(throws: FieldError.self) { try OneTimeCode(parsing: Secret(input)) }
        #expect(error?.field == "code")
    }

    @Test(
        arguments: [
            ("123456", true, true), ("12345", true, false), ("12345", false, true), ("", false, false),
            ("пароль", true, true), ("ёёё", true, false), (String(repeating: "x", count: 72), true, true),
            (String(repeating: "x", count: 73), true, false), (String(repeating: "x", count: 73), false, false),
            (String(repeating: "ё", count: 37), false, false),
        ])
    func `a password has 6 characters when it is new, and 72 bytes at most`(
        password: String, isNew: Bool, isGood: Bool
    ) {
        var failure: FieldError?
        do {
            try PasswordRule.check(Secret(password), isNew: isNew)
        } catch {
            failure = error
        }
        #expect(failure?.field == (isGood ? nil : "password"))
    }

    @Test func `an error repeats nothing of what was typed`() {
        let error = #expect(throws: FieldError.self) { try EmailAddress(parsing: "hunter2 hunter2") }
        #expect(error?.reason.contains("hunter2") == false)
    }
}
