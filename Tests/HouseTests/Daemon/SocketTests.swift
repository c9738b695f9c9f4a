import RingbackBase
import Testing

@Suite struct `The socket` {
    @Test func `SK-10: the socket takes a body of 64 KiB and no larger one`() async throws {
        try await Stage.play { stage in
            let largest = "{}" + String(repeating: " ", count: 65_534)
            let taken = try await stage.raw(Stage.request("POST", "/v1/accounts/work/refresh", largest))
            #expect(taken.status == 401, "\(taken)")
            let refused = try await stage.raw(Stage.request("POST", "/v1/accounts/work/refresh", largest + " "))
            #expect(refused.status == 413 && refused.code == "payload_too_large" && refused.isProblem, "\(refused)")
            // The announcement is enough.
            let announced = try await stage.raw(
                "POST /v1/reload HTTP/1.1\r\nHost: ringback\r\nContent-Length: 99999999999\r\n\r\n")
            #expect(announced.status == 413, "\(announced)")
        }
    }
}
