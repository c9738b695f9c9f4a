/// Reads unquoted values: booleans, numbers, dates and times, strictly as in TOML 1.0.0.
enum TOMLPlainValue {
    /// - Parameter text: may end with blanks.
    /// - Returns: nil for other text, and for integers that do not fit into 64 bits.
    static func read(_ text: ArraySlice<UInt8>) -> TOMLDocument.Value? {
        var text = text
        while let last = text.last, last == 0x20 || last == 0x09 { text.removeLast() }
        if text.elementsEqual("true".utf8) { return .boolean(true) }
        if text.elementsEqual("false".utf8) { return .boolean(false) }
        return readNumber(text) ?? (isMoment(text) ? .other("a date or time") : nil)
    }

    private static func readNumber(_ text: ArraySlice<UInt8>) -> TOMLDocument.Value? {
        let float = TOMLDocument.Value.other("a floating-point number")
        var cursor = Cursor(rest: text)
        let isSigned = cursor.take("+-")
        if ["inf", "nan"].contains(where: { cursor.rest.elementsEqual($0.utf8) }) { return float }
        for (prefix, digits, radix) in [("0x", "0123456789abcdefABCDEF", 16), ("0o", "01234567", 8), ("0b", "01", 2)]
        where !isSigned && text.starts(with: prefix.utf8) {
            cursor.rest = text.dropFirst(2)
            let number = cursor.rest
            return cursor.takeGroup(of: digits) && cursor.rest.isEmpty ? integer(number, radix) : nil
        }
        let whole = cursor.rest
        guard cursor.takeGroup(of: Cursor.decimal) else { return nil }
        guard whole.first != UInt8(ascii: "0") || whole.count - cursor.rest.count == 1 else { return nil }
        if cursor.rest.isEmpty { return integer(text, 10) }
        if cursor.take("."), !cursor.takeGroup(of: Cursor.decimal) { return nil }
        if cursor.take("eE") {
            _ = cursor.take("+-")
            guard cursor.takeGroup(of: Cursor.decimal) else { return nil }
        }
        return cursor.rest.isEmpty ? float : nil
    }

    private static func integer(_ text: ArraySlice<UInt8>, _ radix: Int) -> TOMLDocument.Value? {
        let digits = text.filter { $0 != UInt8(ascii: "_") }
        return Int(String(decoding: digits, as: UTF8.self), radix: radix).map { .integer($0) }
    }

    private static func isMoment(_ text: ArraySlice<UInt8>) -> Bool {
        var cursor = Cursor(rest: text)
        guard cursor.takeDate() else {
            cursor.rest = text
            return cursor.takeTime() && cursor.rest.isEmpty
        }
        guard !cursor.rest.isEmpty else { return true }
        guard cursor.take("Tt "), cursor.takeTime() else { return false }
        if !cursor.take("Zz"), cursor.take("+-") {
            guard let hour = cursor.takeNumber(2), hour < 24, cursor.take(":"), let minute = cursor.takeNumber(2),
                minute < 60
            else { return false }
        }
        return cursor.rest.isEmpty
    }

    private struct Cursor {
        static let decimal = "0123456789"
        var rest: ArraySlice<UInt8>

        /// Takes one of these characters.
        mutating func take(_ characters: String) -> Bool {
            guard let byte = rest.first, characters.utf8.contains(byte) else { return false }
            rest.removeFirst()
            return true
        }

        mutating func takeNumber(_ count: Int) -> Int? {
            let text = rest.prefix(count)
            for _ in 0..<count where !take(Cursor.decimal) { return nil }
            return Int(String(decoding: text, as: UTF8.self))
        }

        /// Digits with single `_` between them.
        mutating func takeGroup(of digits: String) -> Bool {
            repeat {
                guard take(digits) else { return false }
                while take(digits) {}
            } while take("_")
            return true
        }

        mutating func takeDate() -> Bool {
            guard let year = takeNumber(4), take("-"), let month = takeNumber(2), take("-"), let day = takeNumber(2),
                (1...12).contains(month)
            else { return false }
            let isLeapYear = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
            let days = [31, isLeapYear ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
            return (1...days[month - 1]).contains(day)
        }

        /// Accepts a leap second.
        mutating func takeTime() -> Bool {
            guard let hour = takeNumber(2), hour < 24, take(":"), let minute = takeNumber(2), minute < 60, take(":"),
                let second = takeNumber(2), second <= 60
            else { return false }
            guard take(".") else { return true }
            guard take(Cursor.decimal) else { return false }
            while take(Cursor.decimal) {}
            return true
        }
    }
}
