// Recommendations on iOS and macOS, from a folder that `ownview export --onnx` wrote.
// Swift package: https://github.com/microsoft/onnxruntime-swift-package-manager, or the pod onnxruntime-objc.

import Foundation
import OnnxRuntimeBindings

/// The model of a file.
final class Recommender {
    private let environment: ORTEnv
    private let session: ORTSession
    private let asksForPause: Bool

    init(path: String) throws {
        environment = try ORTEnv(loggingLevel: .warning)
        session = try ORTSession(env: environment, modelPath: path, sessionOptions: nil)
        asksForPause = try session.inputNames().contains("after_pause")
    }

    /// The k best items, by position in items.csv, for a history of such positions, the oldest first.
    func recommend(_ history: [Int64], k: Int64 = 10, afterPause: Bool = false) throws -> [Int64] {
        var given = ["history": try whole(history), "k": try whole([k])]
        if asksForPause {  // a blend asks whether the latest item is from before a pause
            given["after_pause"] = try whole([afterPause ? 1 : 0])
        }
        let found = try session.run(withInputs: given, outputNames: ["best"], runOptions: nil)
        let best = try found["best"]!.tensorData() as Data
        return best.withUnsafeBytes { Array($0.bindMemory(to: Int64.self)) }
    }

    private func whole(_ values: [Int64]) throws -> ORTValue {
        let data = values.withUnsafeBytes { NSMutableData(data: Data($0)) }
        return try ORTValue(tensorData: data, elementType: .int64, shape: [NSNumber(value: values.count)])
    }
}
