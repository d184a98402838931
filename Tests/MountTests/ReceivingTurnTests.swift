import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Mount

/// The turn of one of several threads to receive requests.
struct ReceivingTurnTests {
  @Test func oneThreadHasTheTurnUntilItPassesIt() throws {
    let turn = ReceivingTurn()
    let order = Mutex<[String]>([])
    turn.take()
    turn.take()
    let other = try Workers(count: 1, capacity: 2, name: "test")
    other.submit {
      turn.pass()
      turn.take()
      order.withLock { $0.append("other") }
      turn.pass()
    }
    Host.pause(seconds: 0.02)
    order.withLock { $0.append("first") }
    #expect(turn.isMine)
    turn.pass()
    #expect(!turn.isMine)
    other.finish()
    turn.take()
    turn.pass()
    #expect(order.withLock { $0 } == ["first", "other"])
  }

  /// A request answered from memory keeps the turn; one that reads the repository passes it on
  /// first.
  @Test func turnIsPassedBeforeTheRepositoryIsRead() throws {
    let fixture = try MountFixture()
    try fixture.backUp()
    let files = try fixture.files(interval: 60)
    let path: ByteString = "latest"
    _ = try files.find(path)
    files.turn.take()
    _ = try files.find(path)
    #expect(files.turn.isMine)
    let data = ByteString("snapshots/2026-11-01T10.30.01Z").appending(MountFixture.data)
    let large = data.appending("large")
    _ = try files.find(large)
    #expect(!files.turn.isMine, "trees were read")
    files.turn.take()
    let number = try files.find(large).number
    _ = try files.attributeNames(of: number)
    #expect(files.turn.isMine, "trees are held")
    _ = try files.find(data.appending("note"))
    #expect(!files.turn.isMine, "links are counted")
    files.turn.take()
    let note = try files.find(data.appending("note")).number
    files.turn.take()
    _ = try files.value(of: "user.a", of: note)
    #expect(files.turn.isMine, "a value in the tree")
    _ = try files.value(of: "user.big", of: note)
    #expect(!files.turn.isMine, "a value in a blob")
    let current = try fixture.files(interval: 0)
    current.turn.take()
    _ = try current.find(path)
    #expect(!current.turn.isMine, "the list of snapshots was read")
  }
}
