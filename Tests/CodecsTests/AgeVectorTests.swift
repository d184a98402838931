import Foundation
import TestSupport
import Testing

@testable import Codecs

/// The Community Cryptography Test Vectors (C2SP/CCTV, `age/testdata`): each file is opened, or
/// refused for the stated reason.
struct AgeVectorTests {
  @Test(.enabled(if: Shared.has("vectors/age"))) func eachVectorIsOpenedOrRefusedForItsReason()
    throws
  {
    let vectors = try AgeVector.all()
    #expect(vectors.count >= 143)
    var counts: [String: Int] = [:]
    for vector in vectors {
      let result = vector.result()
      #expect(result.outcome == vector.expected, "\(vector.name): \(result.reason)")
      #expect(result.payload == vector.payload, "\(vector.name): other plain bytes")
      counts[vector.expected, default: 0] += 1
    }
    #expect(
      counts.keys.sorted() == [
        "HMAC failure", "armor failure", "header failure", "no match", "payload failure", "success",
        "unsupported",
      ])
    print("age vectors: \(vectors.count), \(counts.sorted { $0.key < $1.key })")
  }

  /// The identity is not supported, but the file key, which is part of the vector, opens the file:
  /// only this type of stanza is unsupported.
  @Test(.enabled(if: Shared.has("vectors/age"))) func postQuantumFilesOpenWithTheirFileKey() throws
  {
    let vectors = try AgeVector.all().filter { $0.isPostQuantum && $0.stated == "success" }
    #expect(vectors.count >= 5)
    for vector in vectors {
      let file = vector.isArmored ? try AgeArmor.decode(vector.file) : vector.file
      let key = AgeFileKey(copying: vector.fileKey.span)
      let header = try AgeHeader(file.span)
      try header.verify(with: key)
      let plain = try AgeFile(file.span, header: header, key: key).decrypt(file.span)
      #expect(AgeVector.digest(plain) == vector.statedPayload, "\(vector.name)")
      let other = AgeFixture.refusal { () throws(AgeError) in
        try AgeFixture.decrypt(file, with: [AgeIdentity()])
      }
      #expect(other?.kind == .noMatch)
      #expect(other?.reason.contains("post-quantum (mlkem768x25519)") == true, "\(vector.name)")
    }
  }

  /// The division of the stored bytes into portions affects neither the released bytes nor the
  /// error.
  @Test(.enabled(if: Shared.has("vectors/age"))) func vectorsInPortionsHaveTheSameResult() throws {
    for vector in try AgeVector.all() where vector.name.hasPrefix("stream_") {
      for portion in [1000, 65_535, 65_552, 65_553] {
        let result = vector.result(portion: portion)
        #expect(result.outcome == vector.expected, "\(vector.name), \(portion): \(result.reason)")
        #expect(result.payload == vector.payload, "\(vector.name), \(portion)")
      }
    }
  }
}

/// A vector: lines of the form `key: value`, an empty line, and the file.
private struct AgeVector {
  let name: String
  private let fields: [(key: String, value: String)]
  let file: [UInt8]

  static func all() throws -> [AgeVector] {
    let directory = try #require(Shared.directory("vectors/age"))
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
    var vectors = try names.map { try AgeVector($0, Shared.bytes("vectors/age/\($0)")) }
    let compressed = vectors.indices.filter { !vectors[$0].values("compressed").isEmpty }
    let files = try inflate(compressed.map { vectors[$0].file })
    for (index, file) in zip(compressed, files) {
      vectors[index] = AgeVector(vectors[index].name, vectors[index].fields, file)
    }
    return vectors
  }

  private init(_ name: String, _ fields: [(key: String, value: String)], _ file: [UInt8]) {
    (self.name, self.fields, self.file) = (name, fields, file)
  }

  private init(_ name: String, _ bytes: [UInt8]) throws {
    let mark = Data([10, 10])
    let end = try #require(Data(bytes).range(of: mark))
    let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).split(separator: "\n")
    let fields = lines.map { line in
      let parts = line.split(separator: ":", maxSplits: 1)
      return (String(parts[0]), parts[1].trimmingCharacters(in: .whitespaces))
    }
    self.init(name, fields, Array(bytes[end.upperBound...]))
  }

  /// Decompresses zlib streams with Python.
  private static func inflate(_ streams: [[UInt8]]) throws -> [[UInt8]] {
    let script = """
      import sys, zlib
      data, out = sys.stdin.buffer.read(), sys.stdout.buffer
      while data:
          size = int.from_bytes(data[:4], "little")
          plain = zlib.decompress(data[4:4 + size])
          out.write(len(plain).to_bytes(4, "little") + plain)
          data = data[4 + size:]
      """
    var input: [UInt8] = []
    for stream in streams {
      LittleEndian.append(UInt32(stream.count), to: &input)
      input += stream
    }
    let result = try run(["python3", "-c", script], input: input)
    try #require(result.status == 0, "\(result.errors)")
    var (files, offset): ([[UInt8]], Int) = ([], 0)
    while offset < result.output.count {
      let size = Int(LittleEndian.word32(result.output.span, at: offset))
      files.append(Array(result.output[(offset + 4)..<(offset + 4 + size)]))
      offset += 4 + size
    }
    return files
  }

  static func digest(_ bytes: [UInt8]) -> String {
    // sha256sum is independent of the implementation under test.
    let result = try? run(["sha256sum"], input: bytes)
    return String(String(decoding: result?.output ?? [], as: UTF8.self).prefix(64))
  }

  // MARK: - Fields

  private func values(_ key: String) -> [String] {
    fields.filter { $0.key == key }.map(\.value)
  }

  var isArmored: Bool { values("armored") == ["yes"] }
  var fileKey: [UInt8] { values("file key").first.flatMap { Hex.decode($0) } ?? [] }
  var stated: String { values("expect").first ?? "" }
  var statedPayload: String? { values("payload").first }

  /// Whether the vector needs a post-quantum identity, a type that is refused by name.
  var isPostQuantum: Bool {
    values("identity").allSatisfy { $0.hasPrefix("AGE-SECRET-KEY-PQ-1") }
      && !values("identity").isEmpty
  }

  /// The expected outcome of this implementation.
  var expected: String { isPostQuantum ? "unsupported" : stated }
  var payload: String? { isPostQuantum ? nil : statedPayload }

  // MARK: - Running

  struct Result {
    var outcome: String
    var reason = ""
    var payload: String?
  }

  /// Opens the file with the identities or the passphrases, and decrypts it in portions.
  func result(portion: Int = .max) -> Result {
    var plain: [UInt8] = []
    var isOpened = false
    do throws(AgeError) {
      let identities = try identities()
      let file = isArmored ? try AgeArmor.decode(self.file) : self.file
      let opened = try open(file, identities)
      isOpened = true
      var decryptor = AgeDecryptor(opened)
      var offset = opened.head.count
      while offset < file.count {
        let end = portion < file.count - offset ? offset + portion : file.count
        try decryptor.decrypt(file.span.extracting(offset..<end), appendingTo: &plain)
        offset = end
      }
      try decryptor.finish(appendingTo: &plain)
      return Result(outcome: "success", payload: Self.digest(plain))
    } catch {
      return Result(
        outcome: outcome(error), reason: error.description,
        payload: isOpened ? Self.digest(plain) : nil)
    }
  }

  /// The identities. Those of unsupported types are omitted if there are others, as in
  /// `hybrid_x25519_arg`.
  private func identities() throws(AgeError) -> [AgeIdentity] {
    var identities: [AgeIdentity] = []
    for text in values("identity") where isPostQuantum || !text.contains("-PQ-") {
      identities.append(try AgeFixture.key(text))
    }
    return identities
  }

  private func open(_ file: [UInt8], _ identities: [AgeIdentity]) throws(AgeError) -> AgeFile {
    var failure: AgeError?
    for text in values("passphrase") {
      do throws(AgeError) {
        return try AgeFile(opening: file.span, with: AgeFixture.passphrase(text))
      } catch {
        failure = error
      }
    }
    if let failure, identities.isEmpty { throw failure }
    return try AgeFile(opening: file.span, with: identities)
  }

  /// Returns the vectors' term for an error. They treat the one exceeded limit as a header failure.
  private func outcome(_ error: AgeError) -> String {
    switch error.kind {
    case .armor: "armor failure"
    case .header: "header failure"
    case .noMatch: "no match"
    case .headerMAC: "HMAC failure"
    case .payload: "payload failure"
    case .unsupported: "unsupported"
    case .limit where name == "scrypt_work_factor_23": "header failure"
    case .limit, .key, .library: error.kind.rawValue
    }
  }
}
