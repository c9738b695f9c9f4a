/// Makes inputs out of kept ones: the same in every run, so that what breaks a law can be made again. It knows nothing of
/// coverage; that is libFuzzer's part (`make fuzz`).
struct Mutator {
    /// SplitMix64.
    private var state: UInt64
    private static let words: [[UInt8]] = [
        "\"", "\\", "\\u0000", "\\ud800", "{", "}", "[", "]", "[]", "{}", ",", ":", "=", "&", "%", "%00", "%2", "+",
        "#", "?",
        ".", "..", "-", "-1", "0", "9223372036854775808", "1e400", "null", "true", "\r\n", "\n", "\r", "\r\n\r\n", "\t",
        " ", "\u{0}", "\u{7F}", "\u{FEFF}", "\u{301}", "\u{2028}", "\u{202E}", "'''", "\"\"\"", "//", "@", "[::1]",
    ].map { Array($0.utf8) }

    init(seed: UInt64) { state = seed }

    private mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    private mutating func number(below bound: Int) -> Int { bound > 0 ? Int(next() % UInt64(bound)) : 0 }

    mutating func input(from inputs: [[UInt8]]) -> [UInt8] {
        guard !inputs.isEmpty else { return [] }
        var bytes = inputs[number(below: inputs.count)]
        for _ in 0...number(below: 4) { change(&bytes, inputs) }
        return bytes
    }

    private mutating func change(_ bytes: inout [UInt8], _ inputs: [[UInt8]]) {
        let start = number(below: bytes.count + 1)
        let length = min(bytes.count - start, 1 + number(below: number(below: 2) == 0 ? 4 : 64))
        switch number(below: 8) {
        case 0 where length > 0: bytes[start] ^= 1 << UInt8(number(below: 8))
        case 1 where length > 0: bytes[start] = UInt8(truncatingIfNeeded: next())
        case 2: bytes.removeSubrange(start..<(start + length))
        case 3: bytes.insert(contentsOf: bytes[start..<(start + length)], at: start)
        case 4: bytes.removeSubrange(start...)
        case 5:
            // The rest of another input.
            let other = inputs[number(below: inputs.count)]
            bytes.replaceSubrange(start..., with: other[number(below: other.count)...].prefix(4_096))
        default: bytes.insert(contentsOf: Mutator.words[number(below: Mutator.words.count)], at: start)
        }
    }
}
