import ArchiveStore
import Codecs
import Lifecycle
import SystemIO
import TestSupport
import Testing

/// After any one object of a repository is damaged, a check and one backup of the unchanged source
/// make everything restorable again.
@Suite(.spreadScans) struct DamageRecoveryTests {
  @Test(arguments: DamagedFixture.Damage.allCases)
  func aBackupAfterACheckRestoresWholeWhateverWasDamaged(_ damage: DamagedFixture.Damage) throws {
    let count = try DamagedFixture().objects().count
    #expect(count == 4)
    for number in 0..<count {
      let fixture = try DamagedFixture()
      let object = try fixture.objects()[number]
      try fixture.damage(object, damage)
      _ = try fixture.check()
      #expect(try fixture.backsUpWhole(), "\(object)")
    }
  }

  /// There is no second copy of it, and nothing in it but the id is a repository's own.
  @Test(arguments: DamagedFixture.Damage.allCases)
  func aDamagedRepositoryFileIsRefusedByNameAndCanBeMadeAgain(
    _ damage: DamagedFixture.Damage
  ) throws {
    let fixture = try DamagedFixture()
    let rig = fixture.rig
    try fixture.damage("repo/repository.json", damage)
    let storage = try LocalStorage(path: rig.directory.path("repo"))
    let error = #expect(throws: StoreError.self) { try Repository.open(storage) }
    #expect(error?.kind == (damage == .removed ? .noRepository : .damaged))
    #expect(error?.description.contains("repository.json") == true, "\(error as Any)")
    #expect(error?.hint?.contains("recover.py") == true)
    #expect(error?.hint?.contains("sandboxctl-repository(5)") == true)
    // As that page says: a new repository's, with the id that each snapshot names.
    let new = try Repository.create(
      in: try LocalStorage.create(path: rig.directory.path("new")), program: "test")
    let id = try #require(try rig.repository.snapshots().snapshots.first).snapshot.repository
    let text = try rig.text("new/repository.json").replacing(new.id.hex, with: id.hex)
    try rig.directory.write(text, at: "repo/repository.json")
    let again = try Repository.open(storage)
    #expect(
      try RepositoryCheck(again, reading: .everything, workers: 1).run().tell { _ in }.damaged == 0)
    let report = try rig.backup(to: again, keeping: "cache")
    #expect(report.opened == 0, "the host's state is of the same repository")
    _ = try rig.restore(report, from: again)
    #expect(try rig.records("back") == rig.records("tree"))
  }

  @Test func aTruncatedPackIsStoredAgainWithoutACheck() throws {
    let fixture = try DamagedFixture()
    for object in try fixture.objects() where object.description.hasSuffix(".tar.zst") {
      try fixture.damage(object, .cutToHalf)
    }
    #expect(try fixture.backsUpWhole())
  }

  @Test func aCheckWithoutDataRecordsPacksOfDamagedDirectories() throws {
    let fixture = try DamagedFixture()
    for object in try fixture.objects() where object.description.hasSuffix(".tar.zst") {
      let bytes = try fixture.rig.directory.read(object)
      if bytes.count < 100_000 { try fixture.damage(object, .changed) }
    }
    #expect(try fixture.check(.trees).damaged > 0)
    #expect(try fixture.backsUpWhole())
  }

  @Test func damageStaysReportedThoughNothingIsLostAnyMore() throws {
    let fixture = try DamagedFixture()
    let pack = try #require(try fixture.objects().first)
    try fixture.damage(pack, .changed)
    #expect(try fixture.check().costs > 0)
    #expect(try fixture.backsUpWhole())
    let report = try fixture.check(.trees)
    #expect(report.damaged == 1)
    #expect(report.costs == 0)
  }

  @Test func aPackThatIsWholeAgainIsReliedOnAgain() throws {
    let fixture = try DamagedFixture()
    let pack = try #require(try fixture.objects().first)
    let bytes = try fixture.rig.directory.read(pack)
    try fixture.damage(pack, .changed)
    _ = try fixture.check()
    #expect(try fixture.rig.names("repo/damaged").count == 1)
    try fixture.rig.directory.write(bytes, at: pack)
    #expect(try fixture.check(.trees).damaged == 0)
    #expect(try fixture.rig.names("repo/damaged").isEmpty)
    #expect(try fixture.rig.backup(keeping: "cache").statistics?.newBlobs == 0)
  }

  @Test func aDamagedRecordIsSkippedAndReplacedByTheNextCheck() throws {
    let fixture = try DamagedFixture()
    let pack = try #require(try fixture.objects().first)
    try fixture.damage(pack, .changed)
    _ = try fixture.check()
    let record = try #require(try fixture.rig.names("repo/damaged").first)
    try fixture.damage(ByteString("repo/damaged").appending(record), .cutToHalf)
    #expect(try fixture.check().damaged == 2)
    #expect(try fixture.backsUpWhole())
  }

  @Test func aCheckOfAWholeRepositoryWritesNothing() throws {
    let fixture = try DamagedFixture()
    #expect(try fixture.check().damaged == 0)
    #expect(try !fixture.rig.names("repo").contains("damaged"))
  }
}
