import RingbackBase

/// Forms and queries: decoded once, encoded again, they say the same.
enum FormLaw {
    static func check(_ bytes: [UInt8]) throws {
        guard let pairs = try? FormEncoding.parse(bytes) else { return }
        try hold("there are at most 100 pairs", pairs.count <= 100)
        try hold("a form is printable ASCII", bytes.allSatisfy { $0 > 0x20 && $0 < 0x7F })
        for pair in pairs {
            try hold("no NUL comes out", !pair.name.utf8.contains(0) && !pair.value.utf8.contains(0))
        }
        let plain = pairs.map { ($0.name, $0.value) }
        for spaceAsPlus in [false, true] {
            let text = FormEncoding.encode(plain, spaceAsPlus: spaceAsPlus)
            try hold("what is written is printable ASCII", text.isPrintableASCII && !text.contains(" "))
            try hold("what is written is read as the same", FormEncoding.parse(text) == pairs)
        }
        // A pair more at the end changes nothing before it.
        if pairs.count < 100 {
            let longer = try FormEncoding.parse(bytes + Array("&state=a%20b+c".utf8))
            try hold("what follows changes nothing", longer == pairs + [FormEncoding.Pair("state", "a b c")])
        }
    }
}
