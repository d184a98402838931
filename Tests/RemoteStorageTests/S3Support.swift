import ArchiveStore
import Foundation
import RemoteStorage
import SystemIO
import TestSupport
import Testing

/// Returns the storage error of a call, or nil if there is none.
func failure(_ body: () throws -> Void) -> StoreError? {
  do {
    try body()
    return nil
  } catch {
    if let error = error as? StoreError { return error }
    Issue.record("another error: \(error)")
    return nil
  }
}

/// An in-memory object store (Programs/store.py) that answers like S3, or as rules specify. It ends
/// when this value is released, or when the tests end.
final class StoreServer: Sendable {
  /// The port on 127.0.0.1.
  let port: Int
  private let process: BoundProcess

  /// Starts a server with rules in JSON.
  init(_ rules: String = "[]", certificate: (certificate: String, key: String)? = nil) throws {
    let directory = try TemporaryDirectory("store")
    try directory.write(rules, at: "rules.json")
    let program = Shared.packageRoot.appendingPathComponent(
      "Tests/RemoteStorageTests/Programs/store.py")
    let words = [program.path, directory.string + "/rules.json"]
    let secure = certificate.map { [$0.certificate, $0.key] } ?? []
    process = try BoundProcess("python3", words + secure)
    port = try #require(Int(process.firstLine))
  }

  /// The URL of the server.
  var endpoint: String { "http://127.0.0.1:\(port)" }

  /// Creates empty objects whose keys consist of a prefix and a number.
  func fill(_ prefix: String, count: Int) throws {
    let answer = try process.ask(#"{"do": "fill", "prefix": "\#(prefix)", "count": \#(count)}"#)
    #expect(answer == "{}")
  }

  /// A request that the server received.
  struct Request: Decodable {
    let method: String
    let target: String
    let headers: [String: String]
    let size: Int
    /// The client's port, which identifies the connection.
    let connection: Int
  }

  /// The requests so far.
  func requests() throws -> [Request] {
    var configuration = HTTPConfiguration()
    configuration.proxy = ""
    var body: [UInt8] = []
    _ = try HTTPClient(configuration).send(
      HTTPRequest(.get, url: endpoint + "/-/log", limit: 64 << 20), into: &body)
    return try JSONDecoder().decode([Request].self, from: Data(body))
  }
}

/// The options of a storage in tests: fast retries, no proxy, and the keys of a fictitious user.
func testOptions(
  _ environment: [String: String] = [
    "AWS_ACCESS_KEY_ID": "KEY", "AWS_SECRET_ACCESS_KEY": "SECRET",
  ],
  _ directory: TemporaryDirectory? = nil
) -> S3Storage.Options {
  var options = S3Storage.Options()
  options.http.proxy = ""
  options.retries.base = 0.01
  options.retries.maximum = 0.05
  options.environment = { environment[$0].map { ByteString($0) } }
  options.spool = directory?.path
  return options
}

/// Returns a storage on a server.
func testStorage(
  _ endpoint: String, bucket: String = "bucket", prefix: ByteString = "some/place",
  _ options: S3Storage.Options = testOptions()
) throws -> S3Storage {
  try S3Storage(S3Location(bucket: bucket, prefix: prefix, endpoint: endpoint), options: options)
}

/// Returns the path of an object.
func objectPath(_ text: String) throws -> ObjectPath { try #require(ObjectPath(text)) }
