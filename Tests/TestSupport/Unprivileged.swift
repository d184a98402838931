import Foundation

/// Runs code as a user without privileges, so that a test that runs as root meets the same refusals
/// as anybody else.
///
/// Only the file system's user and group of this thread change (`setfsuid(2)`): the kernel takes the
/// capabilities that override permissions from the thread meanwhile, and from no other. So `body`
/// must stay on its thread.
public enum Unprivileged {
  /// Debian's `nobody` and `nogroup`.
  public static let user: UInt32 = 65534

  /// Runs `body` as nobody, or as the present user when that is not root; with `keepingGroup` in the
  /// group of the process, for code that gives what it makes to that.
  public static func run<Result>(
    keepingGroup: Bool = false, _ body: () throws -> Result
  ) throws -> Result {
    guard geteuid() == 0 else { return try body() }
    guard let setUser = call("setfsuid"), let setGroup = call("setfsgid") else {
      throw Program.Failure(description: "this C library has no setfsuid")
    }
    // Group first and back last: without privileges it can no longer be changed.
    if !keepingGroup { _ = setGroup(user) }
    _ = setUser(user)
    defer {
      _ = setUser(0)
      if !keepingGroup { _ = setGroup(0) }
    }
    // An id that does not exist changes nothing and gives the one in force.
    guard setUser(UInt32.max) == Int32(user) else {
      throw Program.Failure(description: "setfsuid has no effect here")
    }
    return try body()
  }

  private typealias SetID = @convention(c) (UInt32) -> Int32

  private static func call(_ name: String) -> SetID? {
    guard let found = dlsym(dlopen(nil, RTLD_NOW), name) else { return nil }
    return unsafeBitCast(found, to: SetID.self)
  }
}
