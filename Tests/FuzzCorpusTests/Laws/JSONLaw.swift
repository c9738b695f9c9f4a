import RingbackBase

/// JSON from anywhere: what was read can be written and read again, and no reader of the same bytes sees another thing.
enum JSONLaw {
    static func check(_ bytes: [UInt8]) throws {
        guard let value = try? JSON(parsing: bytes) else { return }
        try hold("JSON is UTF-8", String(validating: bytes, as: UTF8.self) != nil)
        let written = value.serialized()
        try hold("what is written has no control character", written.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
        let again = try JSON(parsing: written)
        try hold("what is written is read as the same", again.serialized() == written)
        if isFinite(value) { try hold("no value changes on the way", again == value) }
        try hold("space around it means nothing", JSON(parsing: [0x20, 0x0A] + bytes + [0x0D, 0x09]) == value)
        var values = 0
        try walk(value, depth: 0, &values)
        try hold("there are at most 20000 values", values <= 20_000)
        if value.object != nil || value.array != nil {
            try hold("half a value is none", (try? JSON(parsing: written.dropLast())) == nil)
        }
    }

    private static func walk(_ value: JSON, depth: Int, _ values: inout Int) throws {
        values += 1
        switch value {
        case .object(let object):
            try hold("there are at most 32 levels", depth < 32)
            let names = object.names.map { Array($0.utf8) }
            try hold("no name is there twice", Set(names).count == names.count)
            for member in object.members {
                try hold("a name finds its value", object[member.name] == member.value || !isFinite(member.value))
                try walk(member.value, depth: depth + 1, &values)
            }
        case .array(let elements):
            try hold("there are at most 32 levels", depth < 32)
            for element in elements { try walk(element, depth: depth + 1, &values) }
        default: break
        }
    }

    /// Numbers beyond Double's range are written as null.
    private static func isFinite(_ value: JSON) -> Bool {
        switch value {
        case .double(let number): number.isFinite
        case .array(let elements): elements.allSatisfy(isFinite)
        case .object(let object): object.members.allSatisfy { isFinite($0.value) }
        default: true
        }
    }
}
