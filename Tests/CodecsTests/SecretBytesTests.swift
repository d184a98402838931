import Foundation
import Testing

@testable import Codecs

/// The memory of secrets, as visible in `/proc/self`.
struct SecretBytesTests {
  /// Without permission to lock memory, secrets are only wiped.
  @Test(.enabled(if: ProcessMemory.mayLock, "RLIMIT_MEMLOCK permits no locked memory"))
  func identitiesAreNeitherSwappedNorDumped() throws {
    let secret = SecretBytes.random(count: 32, locked: true)
    let flags = try unsafe secret.withPointer { try ProcessMemory.flags(at: UInt(bitPattern: $0)) }
    // The flags for locked memory and for exclusion from core dumps: proc_pid_smaps(5).
    #expect(flags.contains("lo") && flags.contains("dd"), "\(flags)")
    #expect(secret.count == 32)
  }

  @Test(arguments: [false, true]) func destroyedSecretsAreWiped(locked: Bool) throws {
    var address: UInt = 0
    var copy: [UInt8] = []
    do {
      let secret = SecretBytes.random(count: 4096, locked: locked)
      address = unsafe secret.withPointer { UInt(bitPattern: $0) }
      copy = try #require(try ProcessMemory.bytes(at: address, count: secret.count))
      secret.withBytes { bytes in #expect(bytes.indices.allSatisfy { bytes[$0] == copy[$0] }) }
    }
    // The memory is no longer mapped, or contains different bytes almost everywhere.
    let after = try ProcessMemory.bytes(at: address, count: copy.count) ?? []
    #expect(zip(after, copy).count { $0 == $1 } < copy.count / 16)
  }
}

/// The memory of this process.
private enum ProcessMemory {
  /// Whether the process may lock 1 MiB: proc_pid_limits(5).
  static let mayLock: Bool = {
    let text = try? String(contentsOfFile: "/proc/self/limits", encoding: .utf8)
    let line = text?.split(separator: "\n").first { $0.hasPrefix("Max locked memory") }
    let limit = line?.split(separator: " ").dropFirst(3).first
    return limit == "unlimited" || limit.flatMap { Int($0) }.map { $0 >= 1 << 20 } == true
  }()

  /// Returns the flags of the mapping that contains an address.
  static func flags(at address: UInt) throws -> [Substring] {
    // String(contentsOfFile:) would stop at the first short read, before the end of the file.
    let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/self/smaps"))
    defer { try? file.close() }
    let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
    var isWanted = false
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ")
      let ends = words[0].split(separator: "-").map { UInt($0, radix: 16) }
      if ends.count == 2, let first = ends[0], let end = ends[1] {
        isWanted = first..<end ~= address
      } else if isWanted, words[0] == "VmFlags:" {
        return Array(words.dropFirst())
      }
    }
    return []
  }

  /// Returns the bytes at an address, or nil if no memory is mapped there.
  static func bytes(at address: UInt, count: Int) throws -> [UInt8]? {
    let memory = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/self/mem"))
    defer { try? memory.close() }
    try memory.seek(toOffset: UInt64(address))
    return try? memory.read(upToCount: count).map { Array($0) }
  }
}
