internal import ArgumentParser
internal import SystemIO

/// When a backup is to be made.
enum PowerState: String, CaseIterable, ExpressibleByArgument {
  /// While the machine has mains power.
  case onMains = "on-ac"
}
