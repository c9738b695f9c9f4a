// The codewords are the data of all blocks, interleaved, then their error correction, interleaved. Damage in one place
// then affects each block only a little.

/// Encodes a text as the codewords of a symbol: mode, length, text and padding, split into blocks, each with its
/// Reed-Solomon code.
enum QRCodeCodewords {
    static func codewords(_ text: [UInt8], _ version: QRCodeVersion) -> [UInt8] {
        let blocks = split(data(text, version), into: version.blocks)
        let divisor = divisor(ofDegree: version.correctionCodewords)
        return inTurn(blocks) + inTurn(blocks.map { remainder(of: $0, by: divisor) })
    }

    /// An ECI designator: mode 0111 with assignment 26 (UTF-8), which is followed by mode 0100 (section 7.4.2).
    static let designator: [UInt8] = [0x71, 0xA4]

    /// ASCII is the same in every character set; for other text a reader would have to guess the set.
    static func wantsDesignator(_ text: [UInt8]) -> Bool { text.contains { $0 >= 0x80 } }

    /// Mode 0100, the length, the text, four bits of terminator, then two alternating padding bytes (sections 7.4.5 to
    /// 7.4.10).
    static func data(_ text: [UInt8], _ version: QRCodeVersion) -> [UInt8] {
        var content = [UInt8(truncatingIfNeeded: text.count)] + text
        if version.lengthBits == 16 { content.insert(UInt8(truncatingIfNeeded: text.count >> 8), at: 0) }
        var data: [UInt8] = []
        if wantsDesignator(text) {
            data = designator + content
            // The terminator may be left out if the symbol is full.
            if data.count < version.dataCodewords { data.append(0) }
        } else {
            // The mode has four bits, so every byte is shifted by half a byte.
            var left: UInt8 = 0b0100
            for byte in content {
                data.append(left << 4 | byte >> 4)
                left = byte & 0x0F
            }
            data.append(left << 4)
        }
        var padding: UInt8 = 0xEC
        while data.count < version.dataCodewords {
            data.append(padding)
            padding ^= 0xEC ^ 0x11
        }
        return data
    }

    /// Splits the data into blocks. If they cannot be equal, the first ones are shorter by one byte.
    static func split(_ data: [UInt8], into count: Int) -> [[UInt8]] {
        let (short, longer) = data.count.quotientAndRemainder(dividingBy: count)
        var rest = data[...]
        return (0..<count).map { index in
            let length = short + (index >= count - longer ? 1 : 0)
            defer { rest = rest.dropFirst(length) }
            return Array(rest.prefix(length))
        }
    }

    /// Interleaves the blocks: the first byte of each block, then the second of each. Short blocks have no last byte.
    static func inTurn(_ blocks: [[UInt8]]) -> [UInt8] {
        let longest = blocks.map(\.count).max() ?? 0
        return (0..<longest).flatMap { index in blocks.compactMap { index < $0.count ? $0[index] : nil } }
    }

    // MARK: Reed-Solomon, over GF(256) with x^8 + x^4 + x^3 + x^2 + 1

    /// The product of (x - 2^i) for i below the degree, highest power first, without the leading 1 (annex A).
    static func divisor(ofDegree degree: Int) -> [UInt8] {
        var divisor = [UInt8](repeating: 0, count: degree)
        divisor[degree - 1] = 1
        var root: UInt8 = 1
        for _ in 0..<degree {
            for index in 0..<degree {
                divisor[index] = product(divisor[index], root)
                if index + 1 < degree { divisor[index] ^= divisor[index + 1] }
            }
            root = product(root, 2)
        }
        return divisor
    }

    static func remainder(of data: [UInt8], by divisor: [UInt8]) -> [UInt8] {
        var remainder = [UInt8](repeating: 0, count: divisor.count)
        for byte in data {
            let factor = byte ^ remainder[0]
            remainder.removeFirst()
            remainder.append(0)
            for index in divisor.indices { remainder[index] ^= product(divisor[index], factor) }
        }
        return remainder
    }

    static func product(_ left: UInt8, _ right: UInt8) -> UInt8 {
        var product: UInt8 = 0
        for bit in (0..<8).reversed() {
            product = (product << 1) ^ (product >> 7 &* 0x1D)
            if right >> UInt8(bit) & 1 == 1 { product ^= left }
        }
        return product
    }
}
