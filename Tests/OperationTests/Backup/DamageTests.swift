import ArchiveStore
import Backup
import Restore
import SystemIO
import TestSupport
import Testing

/// A small repository in which one object is missing, truncated or has a changed byte: `check` with
/// the data finds the damage, and a restore restores all undamaged entries, names the others, and
/// never restores wrong data.
///
/// Damage to files that no command reads is harmless: README.txt, recover.py and `reserve`;
/// `repository.json` is either refused or has the same content. Damage to an index object has a
/// separate test.
@Suite(.spreadScans) struct DamageTests {
  /// A repository with two backups of a small tree.
  struct Base {
    let fixture: Fixture
    let storage = MemoryStorage()
    var snapshots: [(snapshot: StoredSnapshot, records: [ByteString: TreeRecord])] = []

    init(backups: Int) throws {
      fixture = try Fixture(inMemory: true)
      let repository = try Repository.create(in: storage, program: "test")
      try fixture.directory.write("one", at: "tree/one")
      try fixture.directory.write("two", at: "tree/folder/two")
      let tree = try Directory.open(path: fixture.directory.path("tree"))
      try tree.createLink("link", to: "one")
      try tree.createHardLink("twin", to: "one", in: tree)
      try tree.attributes(of: "folder").set("user.large", to: [UInt8](repeating: 65, count: 600))
      for number in 1...backups {
        if number > 1 { try fixture.directory.write("more", at: ByteString("tree/more/\(number)")) }
        let plan = BackupPlan.make(try fixture.scan())
        let report = try BackupOperation(
          plan, to: repository, BackupRequest(program: "test", workers: 1)
        ).run()
        snapshots.append((try #require(report.snapshot), try fixture.records("tree")))
      }
    }

    func bytes(_ path: ObjectPath) throws -> [UInt8] { try storage.load(path, limit: 1 << 24) }
  }

  /// The errors with which a damaged repository is refused. If the recipients in `repository.json`
  /// are changed, no known key matches them.
  private static let refusals: Set<StoreError.Kind> =
    TestEncryption.isOn
    ? [.damaged, .noRepository, .refused, .wrongKey] : [.damaged, .noRepository, .refused]

  /// The result of a check of a damaged repository.
  enum Outcome: Equatable {
    /// The check reports the damage.
    case found
    /// The check reports nothing.
    case unnoticed
  }

  private func check(_ storage: DamagedStorage) throws -> Outcome {
    do throws(StoreError) {
      let repository = try Repository.open(storage)
      return try Self.check(repository)
    } catch {
      #expect(Self.refusals.contains(error.kind), "\(error)")
      return .found
    }
  }

  private static func check(_ repository: Repository) throws(StoreError) -> Outcome {
    do {
      let check = RepositoryCheck(repository, reading: .everything, workers: 1)
      let report = try check.run().forEachFinding { _ in }
      return report.damaged + report.costs > 0 ? .found : .unnoticed
    } catch let error as StoreError {
      throw error
    } catch {
      Issue.record("\(error)")
      return .unnoticed
    }
  }

  /// Restores every snapshot, and checks that all restored entries are unchanged and all others are
  /// reported. Returns the number of lost entries.
  private func restore(_ base: Base, _ storage: DamagedStorage, _ what: String) throws -> Int {
    var lost = 0
    for (snapshot, wanted) in base.snapshots {
      let target = ByteString("back-\(Host.randomHex(bytes: 4))")
      defer { try? base.fixture.directory.directory.removeTree(target) }
      let report: RestoreReport
      do {
        let repository = try Repository.open(storage)
        guard try repository.snapshots().snapshots.contains(snapshot) else {
          lost += wanted.count
          continue
        }
        let reader = try repository.beginReading()
        let plan = try RestorePlan.make(
          snapshot, path: "folders/tree", to: base.fixture.directory.path(target), from: reader)
        report = try RestoreOperation(plan, from: reader, threads: 1).run()
      } catch let error as StoreError {
        #expect(Self.refusals.contains(error.kind), "\(what): \(error)")
        #expect(try base.fixture.directory.directory.statusIfPresent(target) == nil, "\(what)")
        lost += wanted.count
        continue
      }
      lost += try compare(wanted, base.fixture.records(target), report, what)
    }
    return lost
  }

  private func compare(
    _ wanted: [ByteString: TreeRecord], _ found: [ByteString: TreeRecord], _ report: RestoreReport,
    _ what: String
  ) throws -> Int {
    #expect(report.failed.isEmpty, "\(what): \(report.failed)")
    var lost = 0
    for path in Set(wanted.keys).union(found.keys) where wanted[path] != found[path] {
      lost += 1
      let isNamed = report.damaged.contains { path.isWithin($0.path) || $0.path == "." }
      #expect(isNamed, "\(what): \(path) of \(report.damaged)")
      // The entry differs only in missing attributes.
      var bare = found[path]
      bare?.attributes = wanted[path]?.attributes ?? [:]
      #expect(bare == nil || bare == wanted[path], "\(what): \(path)")
    }
    #expect(report.damaged.isEmpty == (lost == 0), "\(what): \(report.damaged)")
    return lost
  }

  // MARK: - Whole objects

  private static let harmless: Set<String> = ["README.txt", "recover.py", "reserve"]

  /// Whether an object is only for people, or is read by nobody.
  private func isHarmless(_ path: ObjectPath) -> Bool { Self.harmless.contains("\(path)") }

  private func isIndex(_ path: ObjectPath) -> Bool { "\(path)".hasPrefix("index/") }

  @Test func aRemovedObjectIsFound() throws {
    let base = try Base(backups: 2)
    var kinds: [String: Int] = [:]
    for path in try base.storage.objects() where !isIndex(path) {
      kinds[path.components.first?.description ?? "", default: 0] += 1
      let storage = DamagedStorage(inner: base.storage, object: path, bytes: nil)
      let outcome = try check(storage)
      let lost = try restore(base, storage, "\(path)")
      if isHarmless(path) {
        #expect(outcome == .unnoticed && lost == 0, "\(path)")
      } else if "\(path)".hasPrefix("snapshots/") {
        // A missing snapshot is not noticed; the others are undamaged.
        #expect(outcome == .unnoticed && lost > 0 && lost < 20, "\(path): \(lost)")
      } else {
        #expect(outcome == .found && lost > 0, "\(path): \(lost)")
      }
    }
    #expect(
      kinds == [
        "README.txt": 1, "packs": 4, "recover.py": 1, "repository.json": 1,
        "reserve": 1, "snapshots": 2,
      ])
  }

  @Test func aTruncatedObjectIsFound() throws {
    let base = try Base(backups: 2)
    for path in try base.storage.objects() where !isIndex(path) {
      let whole = try base.bytes(path)
      for length in Set([0, 1, 100, whole.count / 2, whole.count - 1]) where length < whole.count {
        let storage = DamagedStorage(
          inner: base.storage, object: path, bytes: Array(whole[..<length]))
        let what = "\(path) cut off at \(length) of \(whole.count)"
        let outcome = try check(storage)
        let lost = try restore(base, storage, what)
        if isHarmless(path) {
          #expect(outcome == .unnoticed && lost == 0, "\(what)")
        } else if outcome == .unnoticed {
          // The newline at the end of the settings.
          #expect("\(path)" == "repository.json" && lost == 0, "\(what)")
        }
      }
    }
  }

  // MARK: - Every byte

  /// Flips one bit in every byte of the packs, the snapshot and the settings, a different bit for
  /// each byte.
  @Test(arguments: ["packs", "snapshots", "repository.json"])
  func anyFlippedByteIsFoundOrHarmless(_ kind: String) throws {
    let base = try Base(backups: 1)
    var (flips, unnoticed) = (0, 0)
    for path in try base.storage.objects() where "\(path)".hasPrefix(kind) {
      let whole = try base.bytes(path)
      for index in whole.indices {
        var bytes = whole
        bytes[index] ^= 1 << UInt8(index % 8)
        let storage = DamagedStorage(inner: base.storage, object: path, bytes: bytes)
        let what = "\(path), byte \(index) of \(whole.count)"
        let outcome = try check(storage)
        flips += 1
        if outcome == .unnoticed {
          unnoticed += 1
          #expect(kind == "repository.json", "\(what)")
        }
        // Each unnoticed flip is proved harmless; for some of the others, a restore is tested.
        if outcome == .unnoticed || index % 11 == 0 {
          let lost = try restore(base, storage, what)
          if outcome == .unnoticed { #expect(lost == 0, "\(what)") }
        }
      }
    }
    #expect(flips > 400, "\(flips)")
    #expect(unnoticed < flips / 2, "\(unnoticed) of \(flips)")
  }

  /// Damage to the only index object is found, and no wrong data is restored.
  @Test func aDamagedIndexIsFound() throws {
    let base = try Base(backups: 1)
    let path = try #require(try base.storage.objects().first { isIndex($0) })
    let whole = try base.bytes(path)
    var damages: [[UInt8]?] = [nil, [], Array(whole.dropLast())]
    for index in whole.indices {
      var bytes = whole
      bytes[index] ^= 1 << UInt8(index % 8)
      damages.append(bytes)
    }
    for (number, bytes) in damages.enumerated() {
      let storage = DamagedStorage(inner: base.storage, object: path, bytes: bytes)
      #expect(try check(storage) == .found, "damage \(number)")
      if number < 3 || number % 11 == 0 { _ = try restore(base, storage, "damage \(number)") }
    }
  }
}
