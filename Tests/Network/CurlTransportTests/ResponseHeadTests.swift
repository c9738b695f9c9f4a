import RingbackBase
import Testing

@testable import CurlTransport

@Suite struct `The head of an answer` {
    private func head(_ lines: [String]) -> ResponseHead {
        var head = ResponseHead()
        for line in lines { _ = unsafe head.take(Array("\(line)\r\n".utf8).span.bytes) }
        return head
    }

    @Test func `is complete at the empty line`() {
        #expect(!head(["HTTP/1.1 200 OK", "A: 1"]).isComplete)
        #expect(head(["HTTP/1.1 200 OK", "A: 1", ""]).isComplete)
        #expect(!head(["HTTP/1.1 100 Continue", ""]).isComplete)
    }

    @Test func `joins a folded line to the value before it`() {
        #expect(head(["HTTP/1.1 200 OK", "A: one", "  two", ""]).fields["a"] == "one two")
    }

    @Test func `passes over lines without a name`() {
        #expect(head(["HTTP/1.1 200 OK", ": 1", "nonsense", "B: 2", ""]).fields.lines.map(\.name) == ["B"])
    }

    @Test func `takes no field after its end`() {
        #expect(head(["HTTP/1.1 200 OK", "A: 1", "", "HTTP/1.1 500 No", "A: 2", ""]).fields[all: "A"] == ["1"])
    }
}
