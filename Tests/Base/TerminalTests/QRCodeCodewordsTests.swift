import Testing

@testable import Terminal

@Suite struct `A QR code's codewords` {
    @Test func `begin with mode and length, and are padded`() {
        let short = QRCodeCodewords.data(Array("AB".utf8), QRCodeVersion(1, .medium))
        #expect(
            short == [0x40, 0x24, 0x14, 0x20, 0xEC, 0x11, 0xEC, 0x11, 0xEC, 0x11, 0xEC, 0x11, 0xEC, 0x11, 0xEC, 0x11])
        // From version 10 on the length has two bytes.
        let long = QRCodeCodewords.data(Array(repeating: 0x61, count: 0x0123 - 0x50), QRCodeVersion(10, .low))
        #expect(long.prefix(4) == [0x40, 0x0D, 0x36, 0x16] && long.count == 274)
    }

    @Test func `say that a text is UTF-8 if it is more than ASCII`() {
        let data = QRCodeCodewords.data(Array("é".utf8), QRCodeVersion(1, .low))
        #expect(data.prefix(7) == [0x71, 0xA4, 0x02, 0xC3, 0xA9, 0x00, 0xEC])
        // A full symbol has no room for the end, and needs none.
        let full = QRCodeCodewords.data(Array(String(repeating: "é", count: 8).utf8), QRCodeVersion(1, .low))
        #expect(full.count == 19 && full.last == 0xA9)
        let brim = QRCodeCodewords.data(Array(repeating: 0x61, count: 17), QRCodeVersion(1, .low))
        #expect(brim.count == 19 && brim.last == 0x10)
    }

    @Test func `are corrected by the codes of well-known examples`() {
        // "HELLO WORLD" as 1-M, the example of many a tutorial.
        let hello: [UInt8] = [32, 91, 11, 120, 209, 114, 220, 77, 67, 64, 236, 17, 236, 17, 236, 17]
        let divisor = QRCodeCodewords.divisor(ofDegree: 10)
        #expect(divisor == [216, 194, 159, 111, 199, 94, 95, 113, 157, 193])
        #expect(
            QRCodeCodewords.remainder(of: hello, by: divisor) == [196, 35, 39, 119, 235, 215, 231, 226, 93, 23])
        // "01234567" as 1-M, the standard's own example (annex I).
        let digits: [UInt8] = [16, 32, 12, 86, 97, 128, 236, 17, 236, 17, 236, 17, 236, 17, 236, 17]
        #expect(
            QRCodeCodewords.remainder(of: digits, by: divisor) == [165, 36, 212, 193, 237, 54, 199, 135, 44, 85])
    }

    @Test func `leave no remainder`() {
        for degree in [7, 10, 18, 26, 30] {
            let divisor = QRCodeCodewords.divisor(ofDegree: degree)
            let data = (0..<100).map { UInt8(truncatingIfNeeded: $0 * 37 + degree) }
            let whole = data + QRCodeCodewords.remainder(of: data, by: divisor)
            #expect(QRCodeCodewords.remainder(of: whole, by: divisor).allSatisfy { $0 == 0 })
        }
    }

    @Test func `are cut into blocks, short ones first, and take turns`() {
        let blocks = QRCodeCodewords.split(Array(0..<11), into: 3)
        #expect(blocks == [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9, 10]])
        #expect(QRCodeCodewords.inTurn(blocks) == [0, 3, 7, 1, 4, 8, 2, 5, 9, 6, 10])
        for number in QRCodeVersion.all {
            for correction in QRCode.Correction.allCases {
                let version = QRCodeVersion(number, correction)
                #expect(QRCodeCodewords.codewords([], version).count == version.codewords)
            }
        }
    }

    @Test func `are multiplied in their field`() {
        #expect(QRCodeCodewords.product(2, 0x80) == 0x1D)
        #expect(QRCodeCodewords.product(0, 77) == 0 && QRCodeCodewords.product(1, 77) == 77)
        var power: UInt8 = 1
        var seen: Set<UInt8> = []
        for _ in 0..<255 {
            seen.insert(power)
            power = QRCodeCodewords.product(power, 2)
        }
        #expect(power == 1 && seen.count == 255)
    }
}
