import Foundation
import RingbackClient

extension RingbackError: @retroactive LocalizedError {
    public var errorDescription: String? { description }
}
