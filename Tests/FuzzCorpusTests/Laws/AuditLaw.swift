import RingbackBase

@testable import Records

/// The audit log read back: an entry is one line that a terminal may show, and says the same when it is written again.
enum AuditLaw {
    static func check(_ bytes: [UInt8]) throws {
        let all = AuditReader.entries(in: bytes, since: nil, account: nil, limit: .max)
        let lines = bytes.split(separator: 0x0A)
        try hold("an entry is a line", all.count <= lines.count)
        let some = AuditReader.entries(in: bytes, since: nil, account: nil, limit: 3)
        try hold("the newest are the last", some.map(\.text) == all.suffix(3).map(\.text))
        for since in [0, 1_800_000_000] {
            let found = AuditReader.entries(in: bytes, since: since, account: "work", limit: .max)
            for entry in found {
                try hold("an entry is of the account", entry["account"]?.string == "work")
                try hold("an entry is of the time", (entry["last"]?.integer ?? entry["time"]?.integer ?? -1) >= since)
            }
        }
        for line in lines {
            guard let entry = AuditLine.entry(of: line) else { continue }
            let written = AuditLine.bytes(of: entry)
            try hold("a line ends once", written.firstIndex(of: 0x0A) == written.count - 1)
            let text = String(decoding: written.dropLast(), as: UTF8.self)
            try hold("a line hides nothing", text.unicodeScalars.allSatisfy(isVisible))
            guard let again = AuditLine.entry(of: written.dropLast()) else {
                try hold("only a long line is lost", written.count > 32_768)
                continue
            }
            try hold(
                "what is written is read as the same",
                JSON.object(again).serialized() == JSON.object(entry).serialized())
        }
    }

    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: false
        default: true
        }
    }
}
