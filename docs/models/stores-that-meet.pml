/* Two stores and a remote share one record with two slots: docs/decisions/remotes.md, "Stores that exchange
 * versions again". Version i needs slot i; a form is the set of slots that a file or a piece has. Processes are
 * killed before each durable step: their locks and pins go, and what they have written stays.
 *
 *   spin -a stores-that-meet.pml && cc -O2 -DCOLLAPSE -DSAFETY -o pan pan.c && ./pan -m8000000 -w26
 *
 * finds no loss of what names need, a commit beside has found, a branch has appended, or the remote's lists say.
 * spin -DRULE -a leaves out one rule, and finds a loss (./pan -m2000; READ_EARLY: cc -DBFS):
 *
 *   REPLACE     a pull merges forms; with it, the incoming form replaces the local one, and "there is a record"
 *               stands for "it has the slot"
 *   NAME_FIRST  a pull names a version once its records are there
 *   STAY        a pull makes a branch leave the pack before it rewrites it
 *   ONE_BASE    ... in both base frames
 *   READ_EARLY  ... and reads what the pack has after that
 *   NO_PIN      a push pins the versions that it sends
 *   HEAD_FIRST  a push publishes the head once the pieces are there
 *   NO_BOUNDARY a head is not published once a gc of the remote has begun
 *   SAME_FORM   a push uses a piece again only if it has all slots that the store has
 */
#define SLOT(i) (1 << (i))
#define HAS(form, i) (((form) & SLOT(i)) != 0)
#define COVERS(big, small) (((small) & ~(big)) == 0)
#define WHOLE 3

byte form[2];       /* of the record, in each store; 0: it has none */
byte need[2];       /* slots that the store's names need */
byte pinned[2];     /* slots of versions that a push sends */
byte found[2];      /* slots that a large commit in the making refers to; it holds gc.lock shared */
bool exclusive[2];  /* a pull or a gc holds gc.lock, exclusive */
bool goes_on[2];    /* the last base frame of a branch says that it goes on writing the pack */
bool before[2];     /* so does the base frame before; a power cut may restore it */
bool writer[2];     /* a process has that branch open */
bool leaving[2];    /* a pull has it locked */
bool appended[2];   /* commits stand behind the record in the pack */
bool rewritten[2];  /* a pull has replaced the pack */
bool lost[2];       /* commits that the pack had, or that were appended to a replaced file */
byte there[2];      /* the form in the pieces of version i's list; 0: the remote has none */
bool named[2];      /* the remote has version i */
bool doomed[2];     /* a gc of the remote has seen that no head refers to those pieces */
bool pushing[2];    /* a push of the store has read the head */
bool late[2];       /* a gc of the remote has begun since then */

#define OK_STORE(s) COVERS(form[s], need[s])
#define OK_COMMIT(s) COVERS(form[s], found[s])
#define OK_REMOTE(i) (!named[i] || HAS(there[i], i))

#define MAY_PULL(s) (!exclusive[s] && found[s] == 0)

#ifdef SAME_FORM
#define SERVES(piece, own) ((piece) != 0)
#else
#define SERVES(piece, own) COVERS(piece, own)
#endif
#ifdef NO_BOUNDARY
#define IN_TIME(s) true
#else
#define IN_TIME(s) (!late[s])
#endif

/* The first store makes the record, whole; commits behind it go to the same pack while it is active. */
inline commit(s) {
  atomic {
    goes_on[s] && writer[s] ->
      if
      :: rewritten[s] -> lost[s] = true
      :: else -> appended[s] = true
      fi
  }
}

inline begin_large(s, i) {
  atomic { writer[s] && found[s] == 0 && !exclusive[s] && HAS(form[s], i) -> found[s] = SLOT(i) }
}
inline end_large(s, i) {
  atomic {
    found[s] == SLOT(i) ->
      if
      :: need[s] = need[s] | SLOT(i)
      :: skip /* killed, or rolled back */
      fi;
      found[s] = 0
  }
}

inline remove(s, i) { atomic { HAS(need[s], i) -> need[s] = need[s] & ~SLOT(i) } }

/* Slots that no version needs are given back, but not in an active pack; a hole where no version needs the record
 * at all, also there. A kill before the rename, or the hole, changes nothing. */
inline gc(s) {
  atomic {
    found[s] == 0 && !exclusive[s] ->
      if
      :: !goes_on[s] && !before[s] -> form[s] = form[s] & (need[s] | pinned[s])
      :: (need[s] | pinned[s]) == 0 -> form[s] = 0
      :: else
      fi
  }
}

/* Pieces first, then the head. A piece of the other version's list is used again if it serves. */
inline push(s, i, again) {
  atomic {
    HAS(need[s], i) && !named[i] && there[i] == 0 ->
      pushing[s] = true;
#ifndef NO_PIN
      pinned[s] = SLOT(i);
#endif
      again = named[1 - i] && form[s] != 0 && SERVES(there[1 - i], form[s])
  }
  atomic {
#ifdef HEAD_FIRST
    named[i] = true;
#else
    if
    :: !again && !named[i] && there[i] == 0 -> there[i] = form[s]; doomed[i] = false
    :: else
    fi;
#endif
  }
  atomic {
    if
    :: skip /* killed */
#ifdef HEAD_FIRST
    :: there[i] = (again -> there[1 - i] : form[s])
#else
    :: !named[i] && IN_TIME(s) ->
         named[i] = true;
         if
         :: again -> there[i] = there[1 - i]; doomed[i] = false
         :: else
         fi
#endif
    fi;
    pinned[s] = 0; again = false; pushing[s] = false; late[s] = false
  }
}

inline forget(i) { atomic { named[i] -> named[i] = false } }

/* A boundary, then the objects that no head before it refers to. */
inline gc_remote() {
  atomic {
    (!named[0] && there[0] != 0) || (!named[1] && there[1] != 0) ->
      late[0] = pushing[0]; late[1] = pushing[1];
      doomed[0] = !named[0]; doomed[1] = !named[1]
  }
  atomic { if :: doomed[0] -> there[0] = 0 :: skip fi; doomed[0] = false }
  atomic { if :: doomed[1] -> there[1] = 0 :: skip fi; doomed[1] = false }
}

/* The branch has one base frame after the other without the pack. Refused if it has a writer. */
inline leave(s) {
#ifdef STAY
  skip
#else
  if
  :: atomic { (goes_on[s] || before[s]) && !writer[s] ->
       leaving[s] = true;
       before[s] = goes_on[s];
       goes_on[s] = false
     }
#ifndef ONE_BASE
     if
     :: atomic { before[s] = false }
     :: goto stop /* killed */
     fi;
#endif
     leaving[s] = false
  :: atomic { (goes_on[s] || before[s]) && writer[s] -> goto stop }
  :: atomic { !goes_on[s] && !before[s] -> skip }
  fi
#endif
}

/* Records first, then the name. A kill is a jump to `stop`. */
inline pull(s, i, f, knows) {
  atomic { named[i] && !HAS(need[s], i) && MAY_PULL(s) -> exclusive[s] = true; f = there[i] }
#ifdef NAME_FIRST
  need[s] = need[s] | SLOT(i);
#endif
  if
#ifdef REPLACE
  :: atomic { form[s] == WHOLE || form[s] == f -> skip }
  :: atomic { form[s] != WHOLE && form[s] != f -> form[s] = f }
#else
  :: atomic { COVERS(form[s], f) -> skip }
  :: atomic { f == WHOLE && form[s] == 0 && !rewritten[s] -> form[s] = f } /* at its place in the file */
  :: atomic { !COVERS(form[s], f) && !(f == WHOLE && form[s] == 0 && !rewritten[s]) -> skip }
#ifdef READ_EARLY
     knows = appended[s];
#endif
     leave(s);
#ifndef READ_EARLY
     knows = appended[s];
#endif
     atomic { /* the rename */
       form[s] = form[s] | f;
       rewritten[s] = true;
       if
       :: appended[s] && !knows -> lost[s] = true
       :: else
       fi
     }
#endif
  fi;
  atomic {
    if
    :: skip /* killed */
#ifdef REPLACE
    :: form[s] != 0 -> need[s] = need[s] | SLOT(i)
#else
    :: HAS(form[s], i) -> need[s] = need[s] | SLOT(i)
#endif
    fi
  }
  goto stop
}

active [2] proctype store() {
  byte s = _pid;
  do
  :: remove(s, 0)
  :: remove(s, 1)
  :: gc(s)
  :: commit(s)
  :: atomic { goes_on[s] && found[s] == 0 && !leaving[s] -> writer[s] = !writer[s] }
  :: atomic { goes_on[s] && !writer[s] && !leaving[s] -> before[s] = true; goes_on[s] = false } /* sealed */
  :: atomic { !goes_on[s] && before[s] && !writer[s] && !leaving[s] -> before[s] = false }
  :: atomic { !goes_on[s] && before[s] && !writer[s] && !leaving[s] -> goes_on[s] = true } /* a power cut */
  od
}

/* Each exchange is a process of its own, which may be killed between any two steps. */
active [2] proctype exchange() {
  byte s = _pid - 2;
  byte f;
  bool flag;
again:
  do
  :: push(s, 0, flag)
  :: push(s, 1, flag)
  :: pull(s, 0, f, flag)
  :: pull(s, 1, f, flag)
  od;
stop:
  atomic { exclusive[s] = false; leaving[s] = false; f = 0; flag = false; goto again }
}

active proctype remote() {
  do
  :: forget(0)
  :: forget(1)
  :: gc_remote()
  od
}

/* Large commits beside: another process of the same store. */
active [2] proctype large() {
  byte s = _pid - 5;
  do
  :: begin_large(s, 0)
  :: begin_large(s, 1)
  :: end_large(s, 0)
  :: end_large(s, 1)
  od
}

init {
  atomic { form[0] = WHOLE; need[0] = WHOLE; goes_on[0] = true; before[0] = true }
}

ltl nothing_lost {
  [] (OK_STORE(0) && OK_STORE(1) && OK_COMMIT(0) && OK_COMMIT(1) && !lost[0] && !lost[1] && OK_REMOTE(0) &&
      OK_REMOTE(1))
}
