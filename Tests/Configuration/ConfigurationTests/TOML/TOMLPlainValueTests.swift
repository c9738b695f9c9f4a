import Testing

@testable import Configuration

@Suite struct `Values without quotation marks` {
    @Test(arguments: [
        "true", "false", "0", "+0", "-0", "7", "1_000", "-17", "9223372036854775807", "0xDEAD_beef", "0o755", "0b1_0",
        "1.0", "-0.01", "9_224_617.445_991", "1e6", "-2E-2", "6.626e-34", "0e0", "1e06", "inf", "-inf", "+nan",
        "1979-05-27", "07:32:00", "00:32:00.999999", "1979-05-27T07:32:00Z", "1979-05-27t00:32:00.5-07:00",
        "1979-05-27 07:32:00", "1979-05-27 07:32:00z", "1 ", "true\t",
    ]) func `are what TOML says they are`(text: String) throws {
        #expect(TOMLPlainValue.read(Array(text.utf8)[...]) != nil)
        _ = try TOMLDocument(parsing: Array("a = \(text)\nb = [\(text)]\nc = { d = \(text)}\n".utf8))
    }

    @Test(arguments: [
        "", "True", "tru", "truee", "yes", "00", "01", "1_", "_1", "1__0", "+", "-", "+-1", "1.", ".1", "1.e1", "1e",
        "1e+",
        "0x", "0xg", "+0x1", "0b2", "0o8", "0x_1", "1 2", "1,", "inff", "in", "1979-5-27", "1979-05-27T",
        "1979-05-27Tx",
        "1979-05-27 1", "1979-05-27 07:32", "07:32", "07:32:00.", "07:32:00Z", "1979-05-27T07:32:00+0700",
        "1979-05-27x", "1979-02-29", "1979-13-01", "24:00:00", "07:60:00", "1979-05-27T07:32:00+24:00",
        "9223372036854775808",
        "https://id.example.org", "1\u{2028}", "\u{FF11}", "1\r2",
    ]) func `are nothing else`(text: String) {
        #expect(TOMLPlainValue.read(Array(text.utf8)[...]) == nil)
    }
}
