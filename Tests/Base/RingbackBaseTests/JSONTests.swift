import RingbackBase
import Testing

@Suite struct `A JSON value` {
    private let value: JSON = [
        "s": "text", "i": 7, "d": .double(7), "b": true, "a": [1, 2], "o": ["x": nil], "n": nil,
    ]

    @Test func `gives its content as the type it has and as no other`() {
        #expect(value["s"]?.string == "text")
        #expect(value["i"]?.integer == 7)
        #expect(value["b"]?.bool == true)
        #expect(value["a"]?.array == [1, 2])
        #expect(value["o"]?.object?.names == ["x"])
        #expect(value["n"] == .null)
        #expect(value["i"]?.string == nil)
        #expect(value["s"]?.integer == nil)
        #expect(value["d"]?.integer == nil)
        #expect(value["i"]?.bool == nil)
        #expect(value["missing"] == nil)
        #expect(value["s"]?["x"] == nil)
        #expect(value["o"]?["x"] == .null)
    }

    @Test func `has members that are replaced in place, added at the end, and removed`() {
        var object = JSONObject([.init("a", 1), .init("b", 2)])
        object["a"] = 3
        object["c"] = 4
        object["b"] = nil
        #expect(object.names == ["a", "c"])
        #expect(object["a"] == 3)
        object["absent"] = nil
        #expect(object.members.count == 2)
    }
}
