// Compiled by qr.py together with the QR code's own sources. Each line of standard input is a symbol: the text in
// hexadecimal digits, the version, the level (L or M) and the mask, each of these three `-` where it is to be chosen.
// Answered with: version, level, mask, size; the modules, a line each row; the SVG; the three drawings for terminals.

func bytes(_ digits: Substring) -> [UInt8] {
    var rest = digits.dropFirst(0)
    var bytes: [UInt8] = []
    while let byte = UInt8(rest.prefix(2), radix: 16) {
        bytes.append(byte)
        rest = rest.dropFirst(2)
    }
    return bytes
}

while let line = readLine() {
    let words = line.split(separator: " ")
    guard words.count == 4 else { continue }
    let text = bytes(words[0])
    var code: QRCode?
    if let number = Int(words[1]) {
        code = QRCode(text, as: QRCodeVersion(number, words[2] == "L" ? .low : .medium), mask: Int(words[3]))
    } else {
        code = QRCode(String(decoding: text, as: UTF8.self))
    }
    guard let code else {
        print("none")
        continue
    }
    print(code.version, code.correction == .low ? "L" : "M", code.mask, code.size)
    for row in 0..<code.size { print(String((0..<code.size).map { code[$0, row] ? "1" : "0" })) }
    print(code.svg)
    for ink in QRCode.Ink.allCases {
        for line in code.lines(ink) { print(line) }
    }
}
