internal import LocalHTTP
internal import RingbackAPI

struct DescriptionResource: Resource {
    let api: SocketAPI

    static let routes: [Route] = [
        Route(.getOpenAPI, "This document", .json(.document), DescriptionResource.document)
    ]

    func document(_ call: Call) async throws(Problem) -> ServerResponse {
        ServerResponse(json: OpenAPIDocument.document(version: daemon.version))
    }
}

extension Component {
    fileprivate static let document = Component(
        "Document",
        [
            .required("openapi", .string), .required("info", .anyObject), .required("servers", .array(.anyObject)),
            .required("paths", .anyObject), .required("components", .anyObject),
        ])
}
