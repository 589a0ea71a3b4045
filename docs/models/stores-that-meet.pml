/* Two stores and a remote share one record with two slots: docs/decisions/remotes.md, "Stores that meet
 * again". Version i needs slot i; a form is the set of slots that a file or a piece has.
 *
 *   spin -a stores-that-meet.pml && cc -O2 -o pan pan.c
 *   for claim in names commits appends remote; do ./pan -a -m1000000 -N $claim; done
 *
 * finds no violation. With -DOLD (spin -DOLD -a ...) the rules before are checked: a pull puts the form
 * that comes in the place of the one that is here, asks whether there is a record and not whether it has
 * the slot, holds gc.lock shared, and replaces the pack that a branch goes on writing.
 */
#define SLOT(i) (1 << (i))
#define HAS(form, i) (((form) & SLOT(i)) != 0)
#define WHOLE 3

byte form[2];       /* of the record, in each store; 0: it has none */
byte need[2];       /* slots that the store's names need */
byte found[2];      /* slots that a large commit in the making refers to; it holds gc.lock shared */
bool goes_on[2];    /* the pack is one that a branch of the store goes on writing */
bool writer[2];     /* a process has that branch open */
bool appended[2];   /* commits stand behind the record in the pack */
bool lost[2];       /* a pull has replaced the file that they stood in */
byte there[2];      /* the form in the pieces of version i's list; 0: the remote lacks the version */
bool named[2];      /* the remote has version i */
byte exclusive[2];  /* 1: a pull or a gc holds gc.lock, exclusive (OLD: a pull shares it) */

#ifdef OLD
#define MAY_HOLD(s) true
#else
#define MAY_HOLD(s) (found[s] == 0)
#endif
#define OK_STORE(s) ((need[s] & ~form[s]) == 0)
#define OK_COMMIT(s) ((found[s] & ~form[s]) == 0)
#define OK_REMOTE(i) (!named[i] || HAS(there[i], i))

inline commit(s, i) {
  /* the first store makes the record, whole; commits behind it go to the same pack while it is active */
  atomic { goes_on[s] && writer[s] -> appended[s] = true }
}

inline begin_large(s, i) {
  atomic { writer[s] && found[s] == 0 && exclusive[s] == 0 && HAS(form[s], i) -> found[s] = SLOT(i) }
}
inline end_large(s, i) {
  atomic { writer[s] && found[s] == SLOT(i) -> need[s] = need[s] | SLOT(i); found[s] = 0 }
}

/* gc --recompress: slots that no version needs are given back, but not in an active pack */
inline recompress(s) {
  atomic { found[s] == 0 && exclusive[s] == 0 && !goes_on[s] -> form[s] = form[s] & need[s] }
}
/* gc: a hole where no version needs the record at all, also in an active pack */
inline punch(s) {
  atomic { found[s] == 0 && exclusive[s] == 0 && need[s] == 0 -> form[s] = 0 }
}

/* A piece that is there is used again, if its form serves; else the store's own form is sent. */
inline push(s, i) {
  atomic {
    HAS(need[s], i) && !named[i] ->
      if
      :: there[1 - i] == WHOLE -> there[i] = WHOLE
#ifdef OLD
      :: there[1 - i] == form[s] && there[1 - i] != 0 -> there[i] = there[1 - i]
#else
      :: (form[s] & ~there[1 - i]) == 0 -> there[i] = there[1 - i]
#endif
      :: there[i] = form[s]
      fi;
      named[i] = true
  }
}
inline forget(i) { atomic { named[i] -> named[i] = false; there[i] = 0 } }

/* Records first, then the name; a kill comes between the two where `pulled` is not reached. */
inline pull(s, i) {
  atomic {
    named[i] && !HAS(need[s], i) && exclusive[s] == 0 && MAY_HOLD(s) -> exclusive[s] = 1
  }
  atomic {
    if
    :: !named[i] -> skip
#ifdef OLD
    :: named[i] && (form[s] == WHOLE || form[s] == there[i]) -> skip
    :: named[i] && form[s] != WHOLE && form[s] != there[i] ->
         form[s] = there[i];
         if
         :: there[i] != WHOLE && goes_on[s] && appended[s] -> lost[s] = true
         :: else
         fi
#else
    :: named[i] && (there[i] & ~form[s]) == 0 -> skip
    :: named[i] && (there[i] & ~form[s]) != 0 ->
         if
         :: there[i] == WHOLE || !goes_on[s] -> form[s] = form[s] | there[i]
         :: there[i] != WHOLE && goes_on[s] && !writer[s] -> /* the branch leaves the pack */
              goes_on[s] = false;
              form[s] = form[s] | there[i]
         :: there[i] != WHOLE && goes_on[s] && writer[s] -> skip /* refused */
         fi
#endif
    fi
  }
  atomic {
    if
    :: skip /* killed */
#ifdef OLD
    :: form[s] != 0 -> need[s] = need[s] | SLOT(i)
#else
    :: HAS(form[s], i) -> need[s] = need[s] | SLOT(i)
#endif
    :: else
    fi;
    exclusive[s] = 0
  }
}

inline remove(s, i) { atomic { HAS(need[s], i) -> need[s] = need[s] & ~SLOT(i) } }

active [2] proctype store() {
  byte s = _pid;
  byte i;
  do
  :: atomic { i = 0 } ; remove(s, i)
  :: atomic { i = 1 } ; remove(s, i)
  :: recompress(s)
  :: punch(s)
  :: commit(s, i)
  :: push(s, 0)
  :: push(s, 1)
  :: pull(s, 0)
  :: pull(s, 1)
  :: forget(0)
  :: forget(1)
  :: atomic { goes_on[s] && found[s] == 0 -> writer[s] = !writer[s] }
  :: atomic { goes_on[s] && !writer[s] -> goes_on[s] = false } /* a commit has sealed it */
  od
}

/* Large commits beside: another process of the same store. */
active [2] proctype large() {
  byte s = _pid - 2;
  do
  :: begin_large(s, 0)
  :: begin_large(s, 1)
  :: end_large(s, 0)
  :: end_large(s, 1)
  od
}

init {
  atomic { form[0] = WHOLE; need[0] = WHOLE; goes_on[0] = true }
}

/* What names need; what a commit beside has found; what a branch has appended; what the remote's lists say. */
ltl names { [] (OK_STORE(0) && OK_STORE(1)) }
ltl commits { [] (OK_COMMIT(0) && OK_COMMIT(1)) }
ltl appends { [] (!lost[0] && !lost[1]) }
ltl remote { [] (OK_REMOTE(0) && OK_REMOTE(1)) }
