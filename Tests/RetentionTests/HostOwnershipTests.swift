import ArchiveStore
import Retention
import SystemIO
import TestSupport
import Testing

/// The snapshots of one host, also under names that it had before.
struct HostOwnershipTests {
  private static let own = "place:4f2a:xdg:/home/u"

  /// Returns the numbers of the snapshots that are those of the host `new`, among snapshots of
  /// hosts and devices in the order of their age.
  private func owned(
    _ made: [(host: String, device: String)], machine: String? = "4f2a"
  ) -> (numbers: [Int], sharing: Set<String>) {
    let heads = made.indices.map { number in
      SnapshotHead.made(
        number, at: Timestamp(seconds: Int64(number) * day), device: made[number].device,
        host: made[number].host)
    }
    let ownership = HostOwnership(of: "new", machine: machine, in: heads)
    return (made.indices.filter { ownership.contains(heads[$0]) }, ownership.sharing)
  }

  @Test func formerNamesOfADeviceAreIncluded() {
    let own = Self.own
    let found = owned([("first", own), ("old", own), ("old", own), ("new", own), ("new", own)])
    #expect(found.numbers == [0, 1, 2, 3, 4] && found.sharing.isEmpty)
    // Without a newer one with the present name, nobody knows whose it is.
    #expect(owned([("old", own)]).numbers.isEmpty)
    #expect(owned([]).numbers.isEmpty)
  }

  /// Machines that were cloned, after one of them was renamed.
  @Test func namesThatAreStillUsedAreThoseOfOtherHosts() {
    let (own, other) = (Self.own, "place:4f2a:flatpak:/home/u")
    let found = owned([("old", own), ("old", other), ("new", own), ("old", own), ("new", other)])
    #expect(found.numbers == [2, 4] && found.sharing == ["old"])
  }

  @Test(arguments: ["udid:1", "name:tablet", "place::xdg:/home/u", "place:4f2a7:xdg:/home/u", ""])
  func otherDevicesAreKnownByTheNameAlone(_ device: String) {
    for machine in ["4f2a", "", nil] {
      let found = owned([("old", device), ("new", device), ("old", device)], machine: machine)
      #expect(found.numbers == [1] && found.sharing.isEmpty, "\(machine ?? "none")")
    }
  }

  /// Another device of the host may have been backed up under the former name alone.
  @Test func formerNamesAreThoseOfEachDevice() {
    let other = "place:4f2a:xdg:/home/v"
    #expect(owned([("old", other), ("old", Self.own), ("new", Self.own)]).numbers == [1, 2])
  }
}
