import ArchiveStore
import Codecs
import SystemIO
import TestSupport
import Testing

@testable import Backup

/// After damage to any single object of a repository, a check and a backup of the unchanged source
/// make everything restorable again.
@Suite(.spreadScans) struct DamageRecoveryTests {
  @Test(arguments: DamagedFixture.Damage.allCases)
  func aCheckAndABackupRepairAnyDamagedObject(_ damage: DamagedFixture.Damage) throws {
    let objects = try DamagedFixture().objects()
    let count = objects.count
    // Two packs, an index and a snapshot; a list of condemned packs, a pin, and two files in a
    // lease; and the objects in each repository that no reader needs.
    #expect(count == 11)
    for name in ["README.txt", "recover.py", "reserve"] {
      #expect(objects.contains(ByteString("repo/\(name)")))
    }
    for number in 0..<count {
      let damaged = try DamagedFixture()
      let object = try damaged.objects()[number]
      try damaged.damage(object, damage)
      _ = try damaged.check()
      #expect(try damaged.backsUpWhole(), "\(object)")
    }
  }

  /// `repository.json` has no second copy, and only the ID in it is specific to the repository.
  @Test(arguments: DamagedFixture.Damage.allCases)
  func aDamagedRepositoryFileIsRefusedByNameAndCanBeRecreated(
    _ damage: DamagedFixture.Damage
  ) throws {
    let damaged = try DamagedFixture()
    let fixture = damaged.base
    try damaged.damage("repo/repository.json", damage)
    let storage = try LocalStorage(path: fixture.directory.path("repo"))
    let error = #expect(throws: StoreError.self) { try Repository.open(storage) }
    #expect(error?.kind == (damage == .removed ? .noRepository : .damaged))
    #expect(error?.description.contains("repository.json") == true, "\(error as Any)")
    #expect(error?.hint?.contains("recover.py") == true)
    #expect(error?.hint?.contains("sandboxctl-repository(5)") == true)
    // As the page describes: the file of a new repository, with the ID that each snapshot contains.
    let new = try Repository.create(
      in: try LocalStorage.create(path: fixture.directory.path("new")), program: "test")
    let id = try #require(try fixture.repository.snapshots().snapshots.first).snapshot.repository
    let text = try fixture.text("new/repository.json").replacing(new.id.hex, with: id.hex)
    try fixture.directory.write(text, at: "repo/repository.json")
    let again = try Repository.open(storage)
    #expect(
      try RepositoryCheck(again, reading: .everything, workers: 1).run().forEachFinding { _ in }
        .damaged == 0)
    let report = try fixture.backup(to: again, keeping: "cache")
    #expect(report.opened == 0, "the state file belongs to the same repository")
    _ = try fixture.restore(report, from: again)
    #expect(try fixture.records("back") == fixture.records("tree"))
  }

  /// The list names condemned packs that the snapshot needs, as if a prune had to wait.
  @Test(arguments: DamagedFixture.Damage.allCases)
  func packsOfADamagedListOfCondemnedPacksAreUsed(_ damage: DamagedFixture.Damage) throws {
    let damaged = try DamagedFixture()
    let packs = try damaged.packs().compactMap(\.lastComponent)
    let list = try damaged.condemn(packs.map { String("\($0)".prefix(64)) })
    try damaged.damage(list, damage)
    let report = try damaged.base.backup(keeping: "cache")
    #expect(report.statistics?.newBlobs == 0)
    let subjects = report.damagedObjects.map { "repo/\($0.subject)" }
    #expect(subjects == (damage == .removed ? [] : ["\(list)"]))
    _ = try damaged.base.restore(report, to: "back")
    #expect(try damaged.base.records("back") == damaged.base.records("tree"))
    #expect(try damaged.check().damaged == 0)
  }

  @Test func aTruncatedPackIsStoredAgainWithoutACheck() throws {
    let damaged = try DamagedFixture()
    for object in try damaged.packs() {
      try damaged.damage(object, .cutToHalf)
    }
    #expect(try damaged.backsUpWhole())
  }

  @Test func aCheckWithoutDataRecordsPacksOfDamagedDirectories() throws {
    let damaged = try DamagedFixture()
    for object in try damaged.packs() {
      let bytes = try damaged.base.directory.read(object)
      if bytes.count < 100_000 { try damaged.damage(object, .changed) }
    }
    #expect(try damaged.check(.trees).damaged > 0)
    #expect(try damaged.backsUpWhole())
  }

  @Test func damageIsReportedAlsoAfterALaterBackupReplacedTheData() throws {
    let damaged = try DamagedFixture()
    let pack = try #require(try damaged.packs().first)
    try damaged.damage(pack, .changed)
    #expect(try damaged.check().costs > 0)
    #expect(try damaged.backsUpWhole())
    let report = try damaged.check(.trees)
    #expect(report.damaged == 1)
    #expect(report.costs == 0)
  }

  @Test func aRestoredPackIsTrustedAgain() throws {
    let damaged = try DamagedFixture()
    let pack = try #require(try damaged.packs().first)
    let bytes = try damaged.base.directory.read(pack)
    try damaged.damage(pack, .changed)
    _ = try damaged.check()
    #expect(try damaged.base.names("repo/damaged").count == 1)
    try damaged.base.directory.write(bytes, at: pack)
    #expect(try damaged.check(.trees).damaged == 0)
    #expect(try damaged.base.names("repo/damaged").isEmpty)
    #expect(try damaged.base.backup(keeping: "cache").statistics?.newBlobs == 0)
  }

  @Test func aDamagedRecordIsSkippedAndReplacedByTheNextCheck() throws {
    let damaged = try DamagedFixture()
    let pack = try #require(try damaged.packs().first)
    try damaged.damage(pack, .changed)
    _ = try damaged.check()
    let record = try #require(try damaged.base.names("repo/damaged").first)
    try damaged.damage(ByteString("repo/damaged").appending(record), .cutToHalf)
    #expect(try damaged.check().damaged == 2)
    #expect(try damaged.backsUpWhole())
  }

  @Test func aCheckOfAnUndamagedRepositoryWritesNothing() throws {
    let damaged = try DamagedFixture()
    #expect(try damaged.check().damaged == 0)
    #expect(try !damaged.base.names("repo").contains("damaged"))
  }
}
