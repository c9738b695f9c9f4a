// Numbers that the standard only tabulates are copied from its tables; all others are computed.

/// A version with a level of error correction: its capacity and the positions of its patterns.
struct QRCodeVersion: Sendable, Equatable {
    static let all = 1...40

    /// 1 to 40.
    let number: Int
    let correction: QRCode.Correction

    init(_ number: Int, _ correction: QRCode.Correction) {
        self.number = number
        self.correction = correction
    }

    /// Modules on a side.
    var size: Int { 17 + 4 * number }

    /// The maximum number of bytes of an ASCII text: the data without mode, length and incomplete last byte.
    var textBytes: Int { (dataCodewords * 8 - 4 - lengthBits) / 8 }

    func holds(_ text: [UInt8]) -> Bool {
        text.count <= textBytes - (QRCodeCodewords.wantsDesignator(text) ? QRCodeCodewords.designator.count - 1 : 0)
    }

    /// Bits of the length of a text in byte mode (table 3).
    var lengthBits: Int { number < 10 ? 8 : 16 }

    /// All codewords of the symbol, data and error correction.
    var codewords: Int {
        var modules = size * size
        // Three finders with separators, two timing patterns, format and the dark module.
        modules -= 3 * 64 + 2 * (size - 16) + 31
        if let last = alignments.indices.last {
            let onTiming = 2 * (last - 1)
            modules -= (alignments.count * alignments.count - 3) * 25 - onTiming * 5
        }
        if number >= 7 { modules -= 36 }
        return modules / 8
    }

    var dataCodewords: Int { codewords - blocks * correctionCodewords }

    /// The number of blocks, each with its own error correction (table 9).
    var blocks: Int { (correction == .low ? QRCodeVersion.blocksLow : QRCodeVersion.blocksMedium)[number - 1] }

    /// Error correction codewords of each block (table 9).
    var correctionCodewords: Int {
        (correction == .low ? QRCodeVersion.correctionLow : QRCodeVersion.correctionMedium)[number - 1]
    }

    /// The rows and columns of the centres of alignment patterns (annex E); none in version 1.
    var alignments: [Int] {
        guard number > 1 else { return [] }
        let count = number / 7 + 2
        // The distances are equal and even, counted from the far side; only the first one may be smaller.
        let step = number == 32 ? 26 : (number * 4 + count * 2 + 1) / (count * 2 - 2) * 2
        return [6] + (0..<count - 1).reversed().map { size - 7 - $0 * step }
    }

    private static let blocksLow = [
        1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8, 8, 9, 9, 10, 12, 12, 12, 13, 14, 15, 16, 17, 18, 19,
        19, 20, 21, 22, 24, 25,
    ]
    private static let blocksMedium = [
        1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16, 17, 17, 18, 20, 21, 23, 25, 26, 28, 29, 31,
        33,
        35, 37, 38, 40, 43, 45, 47, 49,
    ]
    private static let correctionLow = [
        7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28, 28, 28, 30, 30, 26, 28, 30, 30,
        30,
        30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30,
    ]
    private static let correctionMedium = [
        10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24, 28, 28, 26, 26, 26, 26, 28, 28, 28, 28, 28, 28, 28,
        28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    ]
}
