import Testing

@testable import Terminal

@Suite struct `A QR code` {
    /// The two drawn by libqrencode 4.1.1, which shares no line with us.
    private static let known: [(text: String, version: QRCodeVersion, mask: Int, rows: [String])] = [
        (
            "Ringback", QRCodeVersion(1, .low), 7,
            [
                "#######...#.#.#######", "#.....#.#.#.#.#.....#", "#.###.#.#.##..#.###.#", "#.###.#.....#.#.###.#",
                "#.###.#.#####.#.###.#", "#.....#.###...#.....#", "#######.#.#.#.#######", "........#............",
                "##.#..##..###.###.##.", "##.###..#..#.########", "#.....##.###...#.##.#", "...#.#.###..###.##.#.",
                "#.##..##.###..#.#...#", "........##...###..##.", "#######.#..##.####.#.", "#.....#...#...#....#.",
                "#.###.#...#.###....#.", "#.###.#.##...#####.##", "#.###.#..###.#####..#", "#.....#.#..##..#.....",
                "#######.#....#..##.#.",
            ]
        ),
        (
            "https://example.org/d", QRCodeVersion(2, .medium), 1,
            [
                "#######.#..#.#....#######", "#.....#..#.###..#.#.....#", "#.###.#.#.#.###...#.###.#",
                "#.###.#..###.###..#.###.#", "#.###.#...#.###...#.###.#", "#.....#.#.#.###...#.....#",
                "#######.#.#.#.#.#.#######", "...........#..###........", "#.#...##.#.#..#.#..#..#.#",
                "#.#..#.##....#.#.###.#.##", "#....##.#..#...#.#..###.#", "#.#.....#####.#.#..#.#...",
                ".##..##.###.#..##.##....#", "...#.....##.#..##.##...##", "##.#.###....##.####..##.#",
                "..##...#..###...##.###...", "##.########..##.#####..#.", "........#.#..#..#...#...#",
                "#######.#.##....#.#.#...#", "#.....#..#...#.##...#..#.", "#.###.#..#.###.######...#",
                "#.###.#..##.#....#..#.##.", "#.###.#.##..######.###.##", "#.....#..#.##.#######....",
                "#######.#....##.#.#..#..#",
            ]
        ),
    ]

    @Test func `is module for module what another encoder draws`() {
        for one in Self.known {
            let masks = (0..<8).filter { mask in
                let code = QRCode(Array(one.text.utf8), as: one.version, mask: mask)
                return rows(code) == one.rows
            }
            #expect(masks == [one.mask], "\(one.text)")
        }
    }

    private func rows(_ code: QRCode) -> [String] {
        (0..<code.size).map { row in String((0..<code.size).map { code[$0, row] ? "#" : "." }) }
    }

    @Test func `is as small as it can be, and then as correctable`() throws {
        let expected: [(Int, Int, QRCode.Correction)] = [
            (0, 1, .medium), (14, 1, .medium), (15, 1, .low), (17, 1, .low), (18, 2, .medium), (26, 2, .medium),
            (27, 2, .low), (230, 9, .low), (231, 10, .low), (213, 9, .low), (2_331, 36, .low), (2_953, 40, .low),
        ]
        for (count, version, correction) in expected {
            let code = try #require(QRCode(String(repeating: "a", count: count)))
            #expect((code.version, code.correction) == (version, correction), "\(count)")
            #expect(code.size == 17 + 4 * version && (0..<8).contains(code.mask))
        }
        #expect(QRCode.maxBytes == 2_953)
        #expect(QRCode(String(repeating: "a", count: 2_954)) == nil)
    }

    @Test func `makes room to say that a text is UTF-8`() throws {
        #expect(try #require(QRCode(String(repeating: "é", count: 8))).version == 1)
        #expect(try #require(QRCode(String(repeating: "é", count: 8) + "a")).version == 2)
        #expect(try #require(QRCode(String(repeating: "é", count: 1_476))).version == 40)
        #expect(QRCode(String(repeating: "é", count: 1_476) + "a") == nil)
    }

    @Test func `takes the mask with the least penalty`() throws {
        for text in [
            "", "Ringback", "https://example.org/device?user_code=WDJB-MJHT", String(repeating: "z", count: 300),
        ] {
            let code = try #require(QRCode(text))
            let version = QRCodeVersion(code.version, code.correction)
            let all = (0..<8).map { QRCode(Array(text.utf8), as: version, mask: $0) }
            #expect(all[code.mask] == code)
            #expect(all.map(\.grid.penalty).min() == code.grid.penalty)
        }
    }

    @Test func `is light outside`() throws {
        let code = try #require(QRCode("a"))
        #expect(code[0, 0] && !code[-1, 0] && !code[0, -1] && !code[21, 0] && !code[0, 21])
    }
}
