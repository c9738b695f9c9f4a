import Testing

@testable import Terminal

@Suite struct `A QR code's version` {
    /// The standard's table 7, bytes.
    private static let low = [
        17, 32, 53, 78, 106, 134, 154, 192, 230, 271, 321, 367, 425, 458, 520, 586, 644, 718, 792, 858, 929, 1003, 1091,
        1171, 1273, 1367, 1465, 1528, 1628, 1732, 1840, 1952, 2068, 2188, 2303, 2431, 2563, 2699, 2809, 2953,
    ]
    private static let medium = [
        14, 26, 42, 62, 84, 106, 122, 152, 180, 213, 251, 287, 331, 362, 412, 450, 504, 560, 624, 666, 711, 779, 857,
        911, 997, 1059, 1125, 1190, 1264, 1370, 1452, 1538, 1628, 1722, 1809, 1911, 1989, 2099, 2213, 2331,
    ]

    @Test func `holds what the standard says`() {
        #expect(QRCodeVersion.all.map { QRCodeVersion($0, .low).textBytes } == Self.low)
        #expect(QRCodeVersion.all.map { QRCodeVersion($0, .medium).textBytes } == Self.medium)
    }

    @Test func `has as many codewords at both levels as the standard says`() {
        // Table 1, for some.
        for (number, count) in [1: 26, 2: 44, 6: 172, 7: 196, 13: 532, 14: 581, 21: 1156, 33: 2611, 40: 3706] {
            #expect(QRCodeVersion(number, .low).codewords == count)
            #expect(QRCodeVersion(number, .medium).codewords == count)
        }
    }

    @Test func `has its alignment patterns where the standard has them`() {
        // Annex E, for some.
        let expected = [
            1: [], 2: [6, 18], 6: [6, 34], 7: [6, 22, 38], 14: [6, 26, 46, 66], 15: [6, 26, 48, 70],
            16: [6, 26, 50, 74], 22: [6, 26, 50, 74, 98], 28: [6, 26, 50, 74, 98, 122], 32: [6, 34, 60, 86, 112, 138],
            36: [6, 24, 50, 76, 102, 128, 154], 39: [6, 26, 54, 82, 110, 138, 166],
            40: [6, 30, 58, 86, 114, 142, 170],
        ]
        for (number, places) in expected { #expect(QRCodeVersion(number, .low).alignments == places, "\(number)") }
    }
}
