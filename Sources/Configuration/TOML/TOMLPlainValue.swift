/// Values that stand without quotation marks: booleans, numbers, dates and times, as TOML 1.0.0 writes them and not
/// otherwise. Over some that only begin like one the parser would end the program.
enum TOMLPlainValue {
    /// - Parameter text: may have blanks, and the first half of a line's end, behind it.
    static func isOne(_ text: ArraySlice<UInt8>) -> Bool {
        var text = text
        while let last = text.last, last == 0x20 || last == 0x09 || last == 0x0D { text.removeLast() }
        return text.elementsEqual("true".utf8) || text.elementsEqual("false".utf8) || isNumber(text) || isMoment(text)
    }

    private static func isNumber(_ text: ArraySlice<UInt8>) -> Bool {
        var cursor = Cursor(rest: text)
        let isSigned = cursor.take("+-")
        if ["inf", "nan"].contains(where: { cursor.rest.elementsEqual($0.utf8) }) { return true }
        for (prefix, digits) in [("0x", "0123456789abcdefABCDEF"), ("0o", "01234567"), ("0b", "01")] where !isSigned {
            guard text.starts(with: prefix.utf8) else { continue }
            cursor.rest = text.dropFirst(2)
            return cursor.takeGroup(of: digits) && cursor.rest.isEmpty
        }
        let whole = cursor.rest
        guard cursor.takeGroup(of: Cursor.decimal) else { return false }
        let isLeading = whole.first == UInt8(ascii: "0") && whole.count - cursor.rest.count > 1
        if cursor.take("."), !cursor.takeGroup(of: Cursor.decimal) { return false }
        if cursor.take("eE") {
            _ = cursor.take("+-")
            guard cursor.takeGroup(of: Cursor.decimal) else { return false }
        }
        return !isLeading && cursor.rest.isEmpty
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
            guard cursor.takeDigits(2), cursor.take(":"), cursor.takeDigits(2) else { return false }
        }
        return cursor.rest.isEmpty
    }

    private struct Cursor {
        static let decimal = "0123456789"
        var rest: ArraySlice<UInt8>

        /// One of the characters.
        mutating func take(_ characters: String) -> Bool {
            guard let byte = rest.first, characters.utf8.contains(byte) else { return false }
            rest.removeFirst()
            return true
        }

        mutating func takeDigits(_ count: Int) -> Bool {
            for _ in 0..<count where !take(Cursor.decimal) { return false }
            return true
        }

        /// Digits, with single `_` between them.
        mutating func takeGroup(of digits: String) -> Bool {
            repeat {
                guard take(digits) else { return false }
                while take(digits) {}
            } while take("_")
            return true
        }

        mutating func takeDate() -> Bool {
            takeDigits(4) && take("-") && takeDigits(2) && take("-") && takeDigits(2)
        }

        mutating func takeTime() -> Bool {
            guard takeDigits(2), take(":"), takeDigits(2), take(":"), takeDigits(2) else { return false }
            return !take(".") || (takeDigits(1) && takeMore())
        }

        private mutating func takeMore() -> Bool {
            while take(Cursor.decimal) {}
            return true
        }
    }
}
