import Codecs
import Foundation
import Testing

/// A SplitMix64 generator, which returns the same numbers for a seed on every machine.
struct Seeded: RandomNumberGenerator {
  var state: UInt64

  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }

  /// Returns incompressible bytes.
  mutating func bytes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 8)
    while bytes.count < count {
      var word = next()
      for _ in 0..<8 {
        bytes.append(UInt8(truncatingIfNeeded: word))
        word >>= 8
      }
    }
    bytes.removeLast(bytes.count - count)
    return bytes
  }

  /// Returns a copy of bytes with some of them changed, removed or repeated.
  mutating func damage(_ bytes: [UInt8]) -> [UInt8] {
    var bytes = bytes
    for _ in 0..<Int.random(in: 1...4, using: &self) where !bytes.isEmpty {
      let position = Int.random(in: 0..<bytes.count, using: &self)
      switch Int.random(in: 0..<4, using: &self) {
      case 0: bytes[position] = UInt8.random(in: 0...255, using: &self)
      case 1: bytes[position] ^= 1 << UInt8.random(in: 0..<8, using: &self)
      case 2: bytes.removeSubrange(position..<min(bytes.count, position + 3))
      default:
        bytes.insert(contentsOf: bytes[position..<min(bytes.count, position + 5)], at: position)
      }
    }
    return bytes
  }
}

/// The output and exit status of a program.
struct Output {
  var status: Int32
  var output: [UInt8]
  var errors: String
}

/// Runs a program with bytes on its standard input.
func run(_ arguments: [String], input: [UInt8] = [], directory: String? = nil) throws -> Output {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
  process.arguments = arguments
  if let directory { process.currentDirectoryURL = URL(fileURLWithPath: directory) }
  let position = try TemporaryDirectory()
  let paths = ["in", "out", "err"].map { position.path + "/" + $0 }
  try Data(input).write(to: URL(fileURLWithPath: paths[0]))
  for path in paths.dropFirst() { try Data().write(to: URL(fileURLWithPath: path)) }
  process.standardInput = try FileHandle(forReadingFrom: URL(fileURLWithPath: paths[0]))
  process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: paths[1]))
  process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: paths[2]))
  try process.run()
  process.waitUntilExit()
  return Output(
    status: process.terminationStatus,
    output: Array(try Data(contentsOf: URL(fileURLWithPath: paths[1]))),
    errors: String(
      decoding: try Data(contentsOf: URL(fileURLWithPath: paths[2])), as: UTF8.self))
}

/// A directory that is removed when this object is released.
final class TemporaryDirectory {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "/codecs-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}

/// Returns the error that a read throws. The test fails if there is none.
func failure<Value>(
  _ body: () throws(CodecError) -> Value, at location: SourceLocation = #_sourceLocation
) -> CodecError? {
  do throws(CodecError) {
    let value = try body()
    Issue.record("no error but \(value)", sourceLocation: location)
    return nil
  } catch {
    return error
  }
}
