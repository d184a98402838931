package import ArchiveStore
internal import Codecs
internal import Foundation
internal import SystemIO

/// A requirement on every storage. Tests run all of them with each implementation.
package struct StorageConformance: Sendable, CustomStringConvertible {
  /// The requirement, for messages.
  package let description: String
  /// Checks it in an empty storage.
  package let check: @Sendable (any Storage) throws -> Void

  /// A requirement that a storage does not meet.
  package struct Violation: Error, CustomStringConvertible {
    package let description: String
  }

  fileprivate init(_ description: String, _ check: @escaping @Sendable (Probe) throws -> Void) {
    self.description = description
    self.check = { storage in
      try storage.makeDirectories(["objects", "lease"], in: .root)
      try check(Probe(storage: storage))
    }
  }

  /// All requirements.
  package static let all: [StorageConformance] =
    objects + listings + programs + namesOfDirectories + exclusiveObjects
}

/// A storage with the directories `objects` and `lease`.
private struct Probe {
  let storage: any Storage

  /// Whether it has directories.
  var hasDirectories: Bool { storage.canRename }

  func path(_ text: String) throws -> ObjectPath {
    guard let path = ObjectPath(text) else { throw violation("'\(text)' is no path") }
    return path
  }

  func save(_ bytes: [UInt8], _ name: String) throws {
    try storage.save(bytes, as: path(name), by: path("lease"))
  }

  func load(_ name: String) throws -> [UInt8] { try storage.load(path(name), limit: 1 << 20) }

  func status(_ name: String) throws -> ObjectStatus? { try storage.status(path(name)) }

  func list(_ name: String) throws -> [ByteString] { try storage.list(path(name)) }

  func require(_ condition: Bool, _ text: String) throws {
    if !condition { throw violation(text) }
  }

  /// Checks that a call fails with a code.
  func requireFailure(
    _ code: StoreError.Code, _ text: String, _ body: () throws -> Void
  ) throws {
    do {
      try body()
    } catch let error as StoreError {
      return try require(error.code == code, "\(text): \(error.code), \(error)")
    }
    throw violation("\(text): no error")
  }

  func violation(_ text: String) -> StorageConformance.Violation {
    StorageConformance.Violation(description: "\(storage.location): \(text)")
  }
}

// MARK: - Objects

extension StorageConformance {
  private static let objects = [
    StorageConformance("an object is saved and loaded, whole and in ranges") { probe in
      try probe.save([1, 2, 3, 4], "objects/a")
      try probe.require(try probe.load("objects/a") == [1, 2, 3, 4], "the bytes differ")
      let range = try probe.storage.load(probe.path("objects/a"), offset: 1, count: 2)
      try probe.require(range == [2, 3], "the range differs")
      try probe.require(try probe.list("lease").isEmpty, "a temporary is left")
      try probe.save([], "objects/empty")
      try probe.require(try probe.load("objects/empty").isEmpty, "an empty object has bytes")
    },
    StorageConformance("an object of several parts has all bytes") { probe in
      let bytes = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 * 7 + $0 >> 9) }
      let writer = try probe.storage.startObject(in: probe.path("lease"))
      for start in stride(from: 0, to: bytes.count, by: 700_000) {
        try writer.append(Array(bytes[start..<min(start + 700_000, bytes.count)]))
      }
      let path = try probe.path("objects/large")
      try writer.commit(as: path, digest: Blake2b.hash(bytes), isReadSoon: false)
      try probe.require(try probe.storage.load(path, limit: 1 << 24) == bytes, "the bytes differ")
      let end = try probe.storage.load(path, offset: 2_999_000, count: 1000)
      try probe.require(end == Array(bytes[2_999_000...]), "the range differs")
      try probe.require(try probe.storage.status(path)?.size == 3_000_000, "the size differs")
    },
    StorageConformance("a saved object replaces one of the same name") { probe in
      try probe.save([1], "objects/a")
      try probe.save([2, 3], "objects/a")
      try probe.require(try probe.load("objects/a") == [2, 3], "the bytes differ")
    },
    StorageConformance("limits are enforced") { probe in
      try probe.save([1, 2, 3, 4], "objects/a")
      let path = try probe.path("objects/a")
      try probe.requireFailure(.damaged, "a limit") { _ = try probe.storage.load(path, limit: 3) }
      for offset in [3, 9] as [UInt64] {
        try probe.requireFailure(.damaged, "a range from \(offset)") {
          _ = try probe.storage.load(path, offset: offset, count: 2)
        }
      }
    },
    StorageConformance("missing objects are reported") { probe in
      for name in ["objects/a", "no/a"] {
        try probe.requireFailure(.missing, name) { _ = try probe.load(name) }
        try probe.requireFailure(.missing, "a range of \(name)") {
          _ = try probe.storage.load(probe.path(name), offset: 0, count: 1)
        }
        try probe.require(try probe.status(name) == nil, "\(name) has a status")
      }
    },
    StorageConformance("a status has size and time") { probe in
      try probe.save([1, 2], "objects/a")
      let status = try probe.status("objects/a")
      try probe.require(status?.size == 2 && status?.isDirectory == false, "\(status as Any)")
      try probe.require(
        try probe.status("objects")?.isDirectory == true, "a directory with an object is none")
    },
    StorageConformance("a touch makes an empty object and updates its time") { probe in
      try probe.storage.touch(probe.path("lease/alive"))
      let first = try probe.status("lease/alive")
      for _ in 0..<30 {
        usleep(100_000)
        try probe.storage.touch(probe.path("lease/alive"))
        guard let first, let second = try probe.status("lease/alive") else { break }
        try probe.require(second.size == 0, "it is not empty")
        if second.modified > first.modified { return }
      }
      throw probe.violation("the time does not change in three seconds")
    },
    StorageConformance("nothing is visible before the commit") { probe in
      let writer = try probe.storage.startObject(in: probe.path("lease"))
      try writer.append([1, 2])
      try probe.require(try probe.list("objects").isEmpty, "it is visible")
      try writer.append([3])
      try writer.commit(
        as: probe.path("objects/a"), digest: Blake2b.hash([1, 2, 3]), isReadSoon: true)
      try probe.require(try probe.load("objects/a") == [1, 2, 3], "the bytes differ")
      let other = try probe.storage.startObject(in: probe.path("lease"))
      try other.append([1])
      other.discard()
      try probe.require(try probe.list("lease").isEmpty, "a discarded object is left")
    },
  ]
}

// MARK: - Listings

extension StorageConformance {
  private static let listings = [
    StorageConformance("names are listed in byte order") { probe in
      for name in ["b", "a", "B", "\u{e9}", "a b", "a+b", "a%2fb"] {
        try probe.save([], "objects/" + name)
      }
      let names: [ByteString] = ["B", "a", "a b", "a%2fb", "a+b", "b", "\u{e9}"]
      try probe.require(try probe.list("objects") == names, "\(try probe.list("objects"))")
      try probe.save([], "lease/a")
      try probe.require(try probe.storage.list(.root) == ["lease", "objects"], "the root differs")
      try probe.require(try probe.load("objects/a+b").isEmpty, "a name is changed")
    },
    StorageConformance("a prefix of a name is no directory") { probe in
      try probe.save([1], "objects/ab")
      try probe.require(try probe.status("objects/a") == nil, "it has a status")
      try probe.require(try probe.storage.list(.root).contains("objects"), "the root differs")
    },
    StorageConformance("objects at any depth are listed with sizes") { probe in
      try probe.storage.makeDirectories(["aa", "bb"], in: probe.path("objects"))
      let all: [String: UInt64] = [
        "objects/top": 0, "objects/aa/one": 1, "objects/aa/two": 2, "objects/bb/one": 3,
      ]
      for (name, size) in all { try probe.save([UInt8](repeating: 1, count: Int(size)), name) }
      try probe.save([1], "lease/not-below")
      var sizes: [String: UInt64] = [:]
      try probe.storage.forEachObject(below: probe.path("objects")) {
        path, status throws(StoreError) in
        sizes["\(path)"] = status.isDirectory ? .max : status.size
      }
      try probe.require(sizes == all, "\(sizes)")
      try probe.require(try probe.list("objects") == ["aa", "bb", "top"], "the names differ")
    },
    StorageConformance("a listing has all of many objects") { probe in
      let names = (0..<1100).map { "objects/\(10_000 + $0)" }
      for name in names { try probe.storage.touch(probe.path(name)) }
      var found: Set<String> = []
      try probe.storage.forEachObject(below: probe.path("objects")) { path, _ in
        found.insert("\(path)")
      }
      try probe.require(found == Set(names), "\(found.count) of \(names.count)")
      try probe.require(try probe.list("objects").count == names.count, "the names differ")
      try probe.storage.remove(names.map { try probe.path($0) })
      try probe.require(try probe.list("objects").isEmpty, "some are left")
    },
    StorageConformance("objects below several directories are listed together") { probe in
      try probe.storage.makeDirectories(["aa", "ab", "bb"], in: probe.path("objects"))
      for name in ["objects/aa/one", "objects/ab/no", "objects/bb/two", "lease/no"] {
        try probe.save([1], name)
      }
      var found: [String] = []
      try probe.storage.forEachObject(
        belowAny: ["objects/bb", "objects/none", "objects/aa"].map { try probe.path($0) }
      ) { path, status in if status.size == 1 { found.append("\(path)") } }
      try probe.require(found.sorted() == ["objects/aa/one", "objects/bb/two"], "\(found)")
    },
    StorageConformance("an error ends the listing of objects") { probe in
      for name in ["objects/a", "objects/b"] { try probe.save([], name) }
      var count = 0
      try probe.requireFailure(.damaged, "the listing") {
        try probe.storage.forEachObject(below: .root) { path, _ throws(StoreError) in
          count += 1
          throw StoreError(.damaged, "use", subject: "\(path)", reason: "the test says so")
        }
      }
      try probe.require(count == 1, "it continues")
    },
  ]
}

// MARK: - Changes

extension StorageConformance {
  private static let programs = [
    StorageConformance("a removed object is gone at once") { probe in
      try probe.save([1], "objects/a")
      try probe.storage.remove(probe.path("objects/a"))
      try probe.require(try probe.status("objects/a") == nil, "it has a status")
      try probe.require(try probe.list("objects").isEmpty, "it is listed")
    },
    StorageConformance("several objects are removed, and missing ones ignored") { probe in
      for name in ["objects/a", "objects/b", "objects/c"] { try probe.save([1], name) }
      try probe.storage.remove(
        ["objects/a", "objects/missing", "objects/c"].map { try probe.path($0) })
      try probe.require(try probe.list("objects") == ["b"], "\(try probe.list("objects"))")
      try probe.storage.remove([])
    },
    StorageConformance("threads save and load at the same time") { probe in
      let storage = probe.storage
      nonisolated(unsafe) let failures = NSMutableArray()
      let lock = NSLock()
      DispatchQueue.concurrentPerform(iterations: 4) { number in
        do {
          for round in 0..<8 {
            let bytes = [UInt8](repeating: UInt8(number), count: 1000 + round)
            guard let path = ObjectPath("objects/\(number)-\(round)"),
              let lease = ObjectPath("lease")
            else { continue }
            try storage.save(bytes, as: path, by: lease)
            if try storage.load(path, limit: 1 << 20) != bytes { throw probe.violation("\(path)") }
          }
        } catch { lock.withLock { failures.add("\(error)") } }
      }
      try probe.require(failures.count == 0, "\(failures)")
      try probe.require(try probe.list("objects").count == 32, "some are missing")
    },
  ]
}

// MARK: - Directories

extension StorageConformance {
  private static let namesOfDirectories = [
    StorageConformance("directories are as the capability says") { probe in
      let storage = probe.storage
      guard probe.hasDirectories else {
        try storage.makeDirectories(["lease", "x"], in: .root)
        try probe.require(try storage.list(.root).isEmpty, "a directory is an object")
        try probe.require(try probe.list("no").isEmpty, "a missing prefix has objects")
        try storage.forEachObject(below: probe.path("no")) { _, _ in }
        try probe.requireFailure(.unsupported, "a rename") {
          try storage.rename(probe.path("objects/a"), to: probe.path("objects/b"))
        }
        return
      }
      try probe.requireFailure(.notEmpty, "a second one") {
        try storage.makeDirectories(["lease"], in: .root)
      }
      try probe.requireFailure(.missing, "one in none") {
        try storage.makeDirectories(["x"], in: probe.path("no"))
      }
      try probe.requireFailure(.missing, "a listing") { _ = try probe.list("no") }
      try probe.requireFailure(.missing, "a listing of objects") {
        try storage.forEachObject(below: probe.path("no")) { _, _ in }
      }
      try probe.requireFailure(.missing, "a touch") { try storage.touch(probe.path("no/alive")) }
      try probe.requireFailure(.missing, "a removal") {
        try storage.remove(probe.path("objects/a"))
      }
      try probe.requireFailure(.missing, "a rename") {
        try storage.rename(probe.path("objects/a"), to: probe.path("objects/b"))
      }
    },
    StorageConformance("objects and directories are renamed") { probe in
      guard probe.hasDirectories else { return }
      let storage = probe.storage
      try probe.save([1], "lease/a")
      try storage.rename(probe.path("lease/a"), to: probe.path("objects/b"))
      try probe.require(try probe.load("objects/b") == [1], "the bytes differ")
      try probe.save([2], "lease/c")
      try storage.rename(probe.path("lease/c"), to: probe.path("objects/b"))
      try probe.require(try probe.load("objects/b") == [2], "it was not replaced")
      try storage.makeDirectories(["full"], in: .root)
      try probe.save([3], "full/a")
      let move = ObjectMove(try probe.path("full"), to: try probe.path("objects"))
      try probe.require((try? storage.moveAside([move])) == nil, "a full directory was replaced")
      try probe.require(try probe.load("objects/b") == [2], "a directory was replaced")
      try storage.rename(probe.path("objects"), to: probe.path("lease/taken"))
      try probe.require(try probe.load("lease/taken/b") == [2], "the bytes differ")
      try probe.require(try probe.status("objects") == nil, "it is still there")
    },
    StorageConformance("objects are moved aside, and missing ones ignored") { probe in
      let storage = probe.storage
      let names = ["a", "b", "no"]
      let moves = try names.map {
        ObjectMove(try probe.path("objects/\($0)"), to: try probe.path("lease/removed-\($0)"))
      }
      try probe.save([1], "objects/a")
      try probe.save([2], "objects/b")
      guard probe.hasDirectories else {
        return try probe.requireFailure(.unsupported, "a move") { _ = try storage.moveAside(moves) }
      }
      try probe.require(try !storage.moveAside(moves), "none was missing")
      try probe.require(try probe.list("objects").isEmpty, "there are still objects")
      try probe.require(try probe.load("lease/removed-a") == [1], "the bytes differ")
      try probe.require(try probe.load("lease/removed-b") == [2], "the bytes differ")
      try probe.save([3], "objects/a")
      try probe.require(try storage.moveAside([moves[0]]), "one was missing")
      try probe.require(try probe.load("lease/removed-a") == [3], "it was not replaced")
      try probe.save([4], "objects/a")
      let lost = ObjectMove(try probe.path("objects/a"), to: try probe.path("no/a"))
      try probe.require(try !storage.moveAside([lost]), "it was moved to no directory")
      try probe.require(try probe.load("objects/a") == [4], "it is gone")
    },
    StorageConformance("only an empty directory is removed") { probe in
      guard probe.hasDirectories else { return }
      try probe.save([1], "objects/a")
      var isRemoved = true
      do { try probe.storage.remove(probe.path("objects")) } catch { isRemoved = false }
      try probe.require(!isRemoved, "one with an object is removed")
      try probe.storage.remove(probe.path("objects/a"))
      try probe.storage.remove(probe.path("objects"))
      try probe.require(try probe.storage.list(.root) == ["lease"], "the root differs")
    },
    StorageConformance("a commit fails without the directory of the writer") { probe in
      guard probe.hasDirectories else { return }
      let writer = try probe.storage.startObject(in: probe.path("lease"))
      try writer.append([1])
      try probe.storage.rename(probe.path("lease"), to: probe.path("objects/taken"))
      try probe.requireFailure(.missing, "the commit") {
        try writer.commit(
          as: probe.path("objects/a"), digest: Blake2b.hash([1]), isReadSoon: true)
      }
      try probe.require(try probe.status("objects/a") == nil, "the object exists")
    },
  ]
}

// MARK: - Creating exclusively

extension StorageConformance {
  private static let exclusiveObjects = [
    StorageConformance("an object is created once, or not at all") { probe in
      let path = try probe.path("objects/a")
      guard probe.storage.canCreateExclusively else {
        try probe.requireFailure(.unsupported, "a creation") {
          _ = try probe.storage.create([1], as: path)
        }
        return try probe.require(try probe.status("objects/a") == nil, "it exists")
      }
      try probe.require(try probe.storage.create([1], as: path), "it is not created")
      try probe.require(try !probe.storage.create([2], as: path), "it is created again")
      try probe.require(try probe.load("objects/a") == [1], "it is replaced")
      try probe.storage.remove(path)
      try probe.require(try probe.storage.create([3], as: path), "it is not created after removal")
    },
    StorageConformance("one of several programs creates an object") { probe in
      guard probe.storage.canCreateExclusively else { return }
      let (storage, path) = (probe.storage, try probe.path("objects/a"))
      nonisolated(unsafe) let winners = NSMutableArray()
      let lock = NSLock()
      DispatchQueue.concurrentPerform(iterations: 4) { number in
        let isFirst = try? storage.create([UInt8(number)], as: path)
        if isFirst == true { lock.withLock { winners.add(number) } }
      }
      try probe.require(winners.count == 1, "\(winners)")
      let winner = winners.firstObject as? Int
      try probe.require(try probe.load("objects/a") == [UInt8(winner ?? 9)], "another one's bytes")
    },
  ]
}
